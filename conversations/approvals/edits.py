"""Another input than the agent asked for: what it is checked against, and what then holds of the call."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass

from jsonschema import Draft202012Validator

from agents.discovery import installed_tool
from agents.engine.approval import facts, shown_digest
from agents.engine.ledger import JSON, canonical, copy_json, digest
from agents.engine.schema import problems, schema_digest
from agents.engine.tools import Tool, wire_name
from agents.engine.view import parent
from conversations.models import Output, Snapshot, Step

WHOLE = "input"
"""The place of what is wrong with an input as a whole."""


@dataclass(frozen=True)
class Edit:
    """An input that a person put in the place of the agent's, the digest of that call, and what holds of it."""

    input: dict[str, JSON]
    digest: str
    facts: list[str]


@dataclass(frozen=True)
class Shape:
    """What an edit of one call is checked against, and told of it.

    `asked` is what the person was asked. `tool` is there where this process has the very tool that was asked about:
    what only a plugin offers, round by round, it may not have.
    """

    schema: dict[str, JSON]
    asked: dict[str, JSON]
    tool: Tool | None

    def problems(self, payload: dict[str, JSON]) -> dict[str, list[str]]:
        """What is wrong with this input, by field; empty if it is valid."""
        found: dict[str, list[str]] = defaultdict(list)
        for place, why in problems(self.tool.input, payload) if self.tool else _schema_problems(self.schema, payload):
            found[place or WHOLE].append(why)
        return dict(found)

    def edit(self, payload: dict[str, JSON]) -> Edit:
        """The call with this input, as the engine will name it when it is about to run."""
        now = self._facts(payload)
        return Edit(payload, shown_digest(self.asked["tool"], payload, self.asked["schema"], now), now)

    def _facts(self, payload: dict[str, JSON]) -> list[str]:
        """A fact that the edit does not change stays as the worker said it, who may stand on another machine."""
        shown: list[str] = list(self.asked.get("facts") or [])
        if self.tool is None:
            return shown
        before, after = facts(self.tool, self.asked.get("input", {})), facts(self.tool, payload)
        if len(before) == len(after) == len(shown):
            return [old if a == b else b for old, a, b in zip(shown, before, after, strict=True)]
        return shown if before == after else after


def shape_of(output: Output) -> Shape | None:
    """What an edit of this call is checked against; None where it cannot be: its schema is recorded nowhere."""
    gate = Step.objects.filter(prompt=output.prompt_id, path=output.gate_path, type="action_call").first()
    asked = gate.content.get("payload", {}) if gate else {}
    if asked.get("ask") != "approve" or not asked.get("schema"):
        return None
    tool = installed_tool(str(asked.get("tool")))
    if tool and schema_digest(tool.input) != asked["schema"]:
        tool = None  # another than the one that was asked about
    schema = _recorded_schema(output, asked) or (tool.schema if tool else None)
    return Shape(schema, asked, tool) if schema else None


def same(one: JSON, other: JSON) -> bool:
    """Whether two values say exactly the same: 1 is not 1.0, nor True. False for what is no JSON."""
    try:
        return canonical(one) == canonical(other)
    except (TypeError, ValueError, RecursionError):
        return False


def cleaned(payload: object) -> dict[str, JSON]:
    """An input of somebody's own making, as JSON. Raises TypeError for what is no object that JSON can say."""
    if not isinstance(payload, dict):
        raise TypeError("an input is an object, with a value for each field")
    try:
        copied: dict[str, JSON] = copy_json(payload, WHOLE)
    except RecursionError as error:
        raise TypeError("an input is not nested that deeply") from error
    return copied


def _recorded_schema(output: Output, asked: dict[str, JSON]) -> dict[str, JSON] | None:
    """The schema that the model saw in the round that asked for the call, where it is the one the gate names."""
    starts = Step.objects.filter(prompt=output.prompt_id, path=parent(output.path), type="action_start")
    start = starts.order_by("-seq").first()
    stored = Snapshot.objects.filter(pk=start.content.get("snapshot", "")).first() if start else None
    offered = json.loads(stored.text).get("tools", []) if stored else []
    wanted = wire_name(str(asked["tool"]))
    return next((schema for name, _, schema in offered if name == wanted and digest(schema) == asked["schema"]), None)


def _schema_problems(schema: dict[str, JSON], payload: dict[str, JSON]) -> list[tuple[str, str]]:
    found = Draft202012Validator(schema).iter_errors(payload)
    return [(".".join(map(str, error.absolute_path)), error.message) for error in found]
