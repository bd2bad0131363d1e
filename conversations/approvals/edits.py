"""Another input than the agent asked for: what it is checked against, what then holds of the call, what it changes."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from agents.discovery import installed_tool
from agents.engine.decisions import Ask
from agents.engine.execution.gates import facts, shown, shown_digest
from agents.engine.interfaces.services import PlainServices
from agents.engine.ledger import JSON, canonical, copy_json, digest
from agents.engine.paths import parent
from agents.engine.schema import parse, problems, schema_digest
from agents.engine.tools.tool import Tool, ToolCall, wire_name
from conversations.files.workspaces import folder_of
from conversations.models import Output, Snapshot, Step

WHOLE = "input"
"""The place of what is wrong with an input as a whole."""


@dataclass(frozen=True)
class Edit:
    """An input that a person put in the place of the agent's, the digest of that call, and what is shown of it.

    `change` is what it would change, as the ledger tells it; None where it is not shown, or changes nothing that is.
    """

    input: dict[str, JSON]
    digest: str
    facts: list[str]
    change: dict[str, JSON] | None = None

    def same_basis(self, facts: list[str], change: dict[str, JSON] | None) -> bool:
        """Whether the call holds and begins from the same as the one with these: then an edit is all that is new."""
        return self.facts == facts and _basis(self.change) == _basis(change)


@dataclass(frozen=True)
class EditCheck:
    """What an edit of one call is checked against, and told of it.

    `asked` is what the person was asked, about the call of `output`. `tool` is there where this process has the very
    tool that was asked about: what only a plugin offers, round by round, it may not have.
    """

    output: Output
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
        """The call with this input, as the engine will name it when it is about to run.

        Raises ToolError where the tool says that it cannot work.
        """
        if self.tool is None:
            return self._edit(payload, list(self.asked.get("facts") or []), None)
        after = shown(self.tool, payload, self._call(self.tool, payload)).recorded
        change = after.get("change")
        return self._edit(payload, self._facts(self.tool, after["facts"], change), change)

    def _edit(self, payload: dict[str, JSON], now: list[str], change: dict[str, JSON] | None) -> Edit:
        named = shown_digest(self.asked["tool"], payload, self.asked["schema"], now, change)
        return Edit(payload, named, now, change)

    def _facts(self, tool: Tool, after: list[str], change: dict[str, JSON] | None) -> list[str]:
        """A fact that the edit does not change stays as the worker said it, who may stand on another machine.

        Not so where the text that it begins from is another by now: then what was said of it is of the past.
        """
        told: list[str] = list(self.asked.get("facts") or [])
        before = facts(tool, self._call(tool, self.asked.get("input", {})))
        if _basis(change) != _basis(self.asked.get("change")):
            return after
        if len(before) == len(after) == len(told):
            return [old if a == b else b for old, a, b in zip(told, before, after, strict=True)]
        return told if before == after else after

    def _call(self, tool: Tool, payload: dict[str, JSON]) -> ToolCall[Any]:
        conversation = self.output.conversation
        return ToolCall(
            tool=tool.name,
            input=parse(tool.input, payload),
            user=conversation.owner_id,
            services=_Folder(user=conversation.owner_id, prompt=self.output.prompt_id, conversation=conversation.pk),
            path=self.output.path,
            state=_state(tool, conversation.pk),
        )


@dataclass
class _Folder(PlainServices):
    """What a tool may look at in this process, to say what a call would do: whose it is, and the workspace."""

    conversation: int = 0

    def workspace(self) -> Path:
        """See Services."""
        return folder_of(self.conversation)


def edit_check(output: Output) -> EditCheck | None:
    """What an edit of this call is checked against; None where it cannot be."""
    gate = Step.objects.filter(prompt=output.prompt_id, path=output.gate_path, type="action_call").first()
    asked = gate.content.get("payload", {}) if gate else {}
    if asked.get("ask") != Ask.APPROVE or not asked.get("schema"):
        return None
    tool = installed_tool(str(asked.get("tool")))
    if tool and schema_digest(tool.input) != asked["schema"]:
        tool = None  # another than the one that was asked about
    if tool is None and asked.get("change"):
        return None  # nobody here can say what the edited call would change
    # The same either way; the tool's own has its fields in order.
    schema = tool.schema if tool else _recorded_schema(output, asked)
    return EditCheck(output, schema, asked, tool) if schema else None


def _basis(change: dict[str, JSON] | None) -> tuple[JSON, JSON] | None:
    """What a change begins from: which text, and what stands there."""
    return (change["path"], change["before"]) if change else None


def _state(tool: Tool, conversation: int) -> Any:
    """The state of the tool's plugin as the conversation's last step left it; None for a tool that has none."""
    if tool.plugin is None:
        return None
    steps = Step.objects.filter(conversation=conversation, type="state").order_by("-seq")
    left: JSON = next((step.content["value"] for step in steps if step.content["plugin"] == tool.plugin.name), {})
    return tool.plugin.State.model_validate(left)


def same_json(one: JSON, other: JSON) -> bool:
    """Whether two values say exactly the same: 1 is not 1.0, nor True. False for what is no JSON."""
    try:
        return canonical(one) == canonical(other)
    except (TypeError, ValueError, RecursionError):
        return False


def as_json_object(payload: object) -> dict[str, JSON]:
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
