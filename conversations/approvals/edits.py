"""Edits: approving a call with another input. Checks the input, and finds the facts and change of the edited call."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.discovery import installed_tool
from agents.engine.complaints import sentence
from agents.engine.decisions import Ask
from agents.engine.execution.gates import describe_call, facts, shown_digest
from agents.engine.interfaces.services import PlainServices, Space
from agents.engine.ledger import JSON, canonical, copy_json, digest
from agents.engine.references import is_secret
from agents.engine.schema import schema_digest, schema_problems
from agents.engine.secrets import references_in
from agents.engine.tools.tool import Tool, ToolCall
from conversations.files.workspaces import folder_of
from conversations.ledger.offered import offered_tool
from conversations.models import Output, Step
from conversations.usage.storage import workspace_space

WHOLE = "input"
"""The key of problems that concern an input as a whole."""
TOO_DEEP = "it is nested too deeply"
STAYS_HIDDEN = "this is a secret: it stays as it is, because what is entered here is recorded"
AS_IT_IS = "This call cannot be edited. Decide it as it is."


@dataclass(frozen=True)
class Edit:
    """A person's input in place of the agent's, with the digest of that call and what is shown of it.

    `change` is what the call would change, as recorded in the ledger; None if it changes nothing that is shown.
    """

    input: dict[str, JSON]
    digest: str
    facts: list[str]
    change: dict[str, JSON] | None = None

    def same_basis(self, facts: list[str], change: dict[str, JSON] | None) -> bool:
        """Whether the edited call has the same facts and starts from the same text, so that only the edit is new."""
        return self.facts == facts and _basis(self.change) == _basis(change)


@dataclass(frozen=True)
class EditCheck:
    """Checks edits of one call, and works out what would then be shown.

    `asked` is what the person was asked about the call of `output`. `tool` is set if this process has exactly the tool
    that was asked about. It may not have tools that a plugin offers round by round.
    """

    output: Output
    schema: dict[str, JSON]
    asked: dict[str, JSON]
    tool: Tool | None

    def problems(self, payload: dict[str, JSON]) -> dict[str, list[str]]:
        """Return what is wrong with this input, by field; empty if it is valid."""
        found: dict[str, list[str]] = defaultdict(list)
        for name in self._changed_secrets(payload):
            found[name].append(sentence(STAYS_HIDDEN))
        for place, why in () if found else self.tool.problems(payload) if self.tool else self._schema_problems(payload):
            found[place or WHOLE].append(sentence(why))
        return dict(found)

    def _changed_secrets(self, payload: dict[str, JSON]) -> list[str]:
        """Return the names of the secrets that this input changes: a person sees no secret of the run, and gives none.

        A text that stands there was the agent's own, is shown, and may be another one.
        """
        asked: dict[str, JSON] = self.asked.get("input", {})
        given = {name for name, each in asked.items() if isinstance(each, str)}
        names = {name for name, each in self.schema.get("properties", {}).items() if is_secret(each)} - given
        names |= references_in(payload).keys() | references_in(asked).keys()
        return sorted(name for name in names if not same_json(payload.get(name), asked.get(name)))

    def _schema_problems(self, payload: dict[str, JSON]) -> list[tuple[str, str]]:
        """Return the problems under the schema, which says nothing of references: those that stand stay there."""
        free = dict.fromkeys(references_in(payload), True)
        return schema_problems(self.schema | {"properties": self.schema.get("properties", {}) | free}, payload)

    def edit(self, payload: dict[str, JSON]) -> Edit:
        """Return the call with this input, with the digest that the engine will compute before it runs.

        Raises ToolError if the tool says that the call cannot work.
        """
        stated: list[str] = list(self.asked.get("facts") or [])
        now, change = stated, None
        if self.tool:
            after = describe_call(self.tool, payload, self._call(self.tool, payload)).recorded
            change = after.get("change")
            now = self._facts(self.tool, stated, after["facts"], change)
        named = shown_digest(self.asked["tool"], payload, self.asked["schema"], now, change)
        return Edit(payload, named, now, change)

    def _facts(self, tool: Tool, stated: list[str], after: list[str], change: dict[str, JSON] | None) -> list[str]:
        """Return the facts of the edited call. Unchanged ones stay as the worker stated them, maybe on another machine.

        If the text it starts from has changed since, what the worker stated is outdated, and all facts are new.
        """
        before = facts(tool, self._call(tool, self.asked.get("input", {})))
        if _basis(change) != _basis(self.asked.get("change")):
            return after
        if len(before) == len(after) == len(stated):
            return [old if a == b else b for old, a, b in zip(stated, before, after, strict=True)]
        return stated if before == after else after

    def _call(self, tool: Tool, payload: dict[str, JSON]) -> ToolCall[Any, Any]:
        conversation = self.output.conversation
        return ToolCall(
            tool=tool.name,
            input=tool.parse(payload),
            user=conversation.owner_id,
            services=_Folder(user=conversation.owner_id, prompt=self.output.prompt_id, conversation=conversation.pk),
            path=self.output.path,
            state=_state(tool, conversation.pk),
        )


@dataclass
class _Folder(PlainServices):
    """The services a tool gets in this process to say what a call would do: its user and its workspace."""

    conversation: int = 0

    def space(self) -> Space:
        """Return what the workspace may hold."""
        return workspace_space(self.conversation, self.user)

    def workspace(self) -> Path:
        """Return the folder of the conversation's workspace."""
        return folder_of(self.conversation)


def edit_check(output: Output) -> EditCheck | None:
    """Return the check for edits of this call; None if it cannot be edited."""
    steps = Step.objects.filter(conversation=output.conversation_id, prompt=output.prompt_id)
    gate = steps.filter(path=output.gate_path, type="action_call").first()
    asked = gate.content.get("payload", {}) if gate else {}
    if asked.get("ask") != Ask.APPROVE or not asked.get("schema"):
        return None
    tool = installed_tool(str(asked.get("tool")))
    if tool and schema_digest(tool.input) != asked["schema"]:
        tool = None  # not the tool that was asked about
    if tool is None and asked.get("change"):
        return None  # without the tool, nobody here knows what the edited call would change
    # Both schemas are the same, but the tool's own has its fields in order.
    schema = tool.schema if tool else _offered_schema(output, asked)
    return EditCheck(output, schema, asked, tool) if schema else None


def _basis(change: dict[str, JSON] | None) -> tuple[JSON, JSON] | None:
    """Return what a change starts from: which text, and its content."""
    return (change["path"], change["before"]) if change else None


def _state(tool: Tool, conversation: int) -> Any:
    """Return the state of the tool's plugin after the conversation's last step; None for a tool without a plugin."""
    if tool.plugin is None:
        return None
    steps = Step.objects.filter(conversation=conversation, type="state").order_by("-seq")
    left: JSON = next((step.content["value"] for step in steps if step.content["plugin"] == tool.plugin.name), {})
    return tool.plugin.state_model.model_validate(left)


def same_json(one: JSON, other: JSON) -> bool:
    """Whether two JSON values are exactly the same: 1 differs from 1.0 and True. False for values that are not JSON."""
    try:
        return canonical(one) == canonical(other)
    except (TypeError, ValueError, RecursionError):
        return False


def as_json_object(payload: object) -> dict[str, JSON]:
    """Return an untrusted input as a JSON object. Raises TypeError if it is not one."""
    if not isinstance(payload, dict):
        raise TypeError("the input must be an object with a value for each field")
    try:
        copied: dict[str, JSON] = copy_json(payload, WHOLE)
    except RecursionError as error:
        raise TypeError(TOO_DEEP) from error
    return copied


def _offered_schema(output: Output, asked: dict[str, JSON]) -> dict[str, JSON] | None:
    """Return the schema that the model saw in the round that asked for the call, if it is the one the gate names."""
    offered = offered_tool(output.conversation_id, output.prompt_id, output.path, str(asked["tool"]))
    return offered.schema if offered and digest(offered.schema) == asked["schema"] else None
