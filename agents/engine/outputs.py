"""What people see: the outputs, a fold of the steps. Folding a ledger again gives the same outputs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.engine.change import Change
from agents.engine.errors import RegistryError, ToolError
from agents.engine.ledger import JSON, Step
from agents.engine.view import ancestors, asked_for, parent


class Frozen(BaseModel):
    """The base of what is replaced and never changed."""

    model_config = ConfigDict(frozen=True)


class Success(Frozen):
    """The call did its work; `output` is what it returned."""

    type: Literal["success"] = "success"
    output: Any = None


class Failure(Frozen):
    """The call failed, was refused, or was stopped. `error` is `{code, message}`."""

    type: Literal["error"] = "error"
    error: dict[str, str]


class Pending(Frozen):
    """The call waits for a person; `reason` is what that person reads."""

    type: Literal["pending"] = "pending"
    reason: str


class Deferred(Frozen):
    """The call waits behind a gate of its batch, or was approved and has not begun."""

    type: Literal["deferred"] = "deferred"


class Running(Frozen):
    """The call is being done."""

    type: Literal["running"] = "running"


ToolResult = Union[Success, Failure, Pending, Deferred, Running]  # noqa: UP007 - pydantic reads it


class Approval(Frozen):
    """The latest gate of a call: what a person is asked, and what they decided. Earlier gates are in the steps.

    `facts` is what holds of the call that was asked about, and `change` what it would change; of the edited one, where
    a person edited it: then `proposed` is what the call would have changed as it was asked about.
    """

    path: str
    state: str = "pending"
    ask: str = "approve"
    reason: str = ""
    risk: str = ""
    digest: str = ""
    facts: list[str] = []
    change: Change | None = None
    proposed: Change | None = None
    requested_at: str = ""
    expires_at: str = ""
    decided_by: str = ""
    decided_at: str = ""
    via: str = ""
    note: str = ""


class Output(Frozen):
    """One entry of the timeline.

    `position` is the id of the step that opened it and never changes; `parent` is the path of the entry whose call
    emitted it, "" at the top. Reading order is the tree: an entry, then what its call emitted (S24).
    """

    type: str
    path: str
    position: int
    parent: str = ""
    created_at: str = ""


class TextOutput(Output):
    """Something said by the model, or by the system about the turn (`role_hint` is "system").

    `partial`: the model had said so much when a person stopped it.
    """

    type: Literal["text"] = "text"
    text: str
    role_hint: str = ""
    partial: bool = False


class ToolOutput(Output):
    """A call and what became of it. `input` is what runs, `proposed` what the model asked for if a person edited it."""

    type: Literal["tool"] = "tool"
    tool: str
    call_id: str = ""
    input: dict[str, Any] = {}
    proposed: dict[str, Any] | None = None
    raw: str | None = None
    started_at: str = ""
    ended_at: str = ""
    approval: Approval | None = None
    result: ToolResult = Field(default_factory=Running, discriminator="type")

    @property
    def settled(self) -> bool:
        """Whether the call has its result, which nothing changes any more."""
        return self.result.type in ("success", "error")


class FileOutput(Output):
    """A file that a tool made: people download it, the model reads its summary (S8). `file` is the file's id."""

    type: Literal["file"] = "file"
    file: int
    name: str
    summary: str = ""


class WidgetOutput(Output):
    """Something to look at, never sent to the model (S9). `fallback` says it in words."""

    type: Literal["widget"] = "widget"
    widget: str
    data: dict[str, Any] = {}
    fallback: str = ""


class ReasoningOutput(Output):
    """A summary of the model's reasoning; shown among the details only."""

    type: Literal["reasoning"] = "reasoning"
    text: str


class RetryOutput(Output):
    """An answer that could not be read. The model sees it and the error; people among the details only."""

    type: Literal["retry"] = "retry"
    raw: str
    message: str


_KINDS: dict[str, type[Output]] = {
    "text": TextOutput,
    "tool": ToolOutput,
    "file": FileOutput,
    "widget": WidgetOutput,
    "reasoning": ReasoningOutput,
    "retry": RetryOutput,
}


def register_kind(kind: str, model: type[Output]) -> None:
    """Make steps of type `kind` open outputs of this model, their payload its fields. Raises RegistryError if taken."""
    if kind in _KINDS:
        raise RegistryError(f"the output kind {kind!r} is registered twice: {_KINDS[kind].__name__}, {model.__name__}")
    _KINDS[kind] = model


def check_kind(kind: str, data: dict[str, JSON]) -> None:
    """Raise RegistryError for a kind that nobody registered, ToolError where its model refuses these fields."""
    model = _KINDS.get(kind)
    if model is None:
        raise RegistryError(f"no output kind {kind!r} is registered")
    try:
        model.model_validate({**data, "type": kind, "path": "", "position": 0})
    except ValidationError as error:
        raise ToolError(f"the output {kind!r} does not take these fields: {error}", code="invalid_output") from error


def forget_kind(kind: str) -> None:
    """Undo `register_kind`."""
    del _KINDS[kind]


def load_output(data: dict[str, JSON]) -> Output:
    """An output from its stored JSON.

    A bare Output where its kind is no longer registered, or has become another since.
    """
    try:
        return _KINDS.get(data["type"], Output).model_validate(data)
    except ValidationError:
        return Output.model_validate(data)


class Outputs:
    """The outputs of one turn, kept along the way as steps arrive."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self._by_position: dict[int, Output] = {}
        self._entries: dict[str, int] = {}  # a call's path -> the position of the entry it opened
        self._at: dict[str, list[int]] = {}  # a path -> the outputs that stand there
        self._below: dict[str, list[int]] = {}  # a path -> the entries of the calls made directly below it
        for step in steps:
            self.add(step)

    def add(self, step: Step) -> Output | None:
        """Fold one step in. Returns the output it opened or changed; None if it touches none (never raises)."""
        before = self._touched(step)
        after = fold(before, step, self._parent(step))
        if after is None or after is before:
            return None
        self.put(after)
        return after

    def put(self, output: Output) -> None:
        """Keep an output, in place of its earlier self."""
        if output.position not in self._by_position:
            self._at.setdefault(output.path, []).append(output.position)
            if isinstance(output, ToolOutput):
                self._entries[output.path] = output.position
                self._below.setdefault(parent(output.path), []).append(output.position)
        self._by_position[output.position] = output

    def at(self, path: str) -> list[Output]:
        """The outputs at this very path, by position."""
        return [self._by_position[position] for position in self._at.get(path, ())]

    def entries_of(self, path: str) -> list[ToolOutput]:
        """The entries of the calls made directly below `path`, in call order."""
        found = [self._by_position[position] for position in self._below.get(path, ())]
        return [output for output in found if isinstance(output, ToolOutput)]

    def entry(self, path: str) -> ToolOutput | None:
        """The entry that the call at `path` opened."""
        position = self._entries.get(path)
        found = self._by_position.get(position) if position is not None else None
        return found if isinstance(found, ToolOutput) else None

    def in_order(self) -> list[Output]:
        """The timeline in reading order."""
        return reading_order(self._by_position.values())

    def __len__(self) -> int:
        return len(self._by_position)

    def _touched(self, step: Step) -> Output | None:
        """An entry is found by its call's path; the gates of a call stand one step below it."""
        found = self.entry(step.path)
        if found or not _is_gate(step.path):
            return found
        above = self.entry(parent(step.path))
        if above and step.type == "action_call":
            return above if step.payload.get("policy") == "human" else None
        return above if above and above.approval and above.approval.path == step.path else None

    def _parent(self, step: Step) -> str:
        """The entry that a new output of this step stands below."""
        opens_entry = step.type == "action_call"
        paths = ancestors(parent(step.path) if opens_entry and step.path else step.path)
        return next((path for path in paths if path in self._entries), "")


def reading_order(outputs: Iterable[Output]) -> list[Output]:
    """An entry, then what its call emitted, by position (S24)."""
    below: dict[str, list[Output]] = {}
    for output in sorted(outputs, key=lambda o: o.position):
        below.setdefault(output.parent, []).append(output)

    def walk(path: str) -> Iterable[Output]:
        for output in below.get(path, ()):
            yield output
            if isinstance(output, ToolOutput):
                yield from walk(output.path)

    return list(walk(""))


def _is_gate(path: str) -> bool:
    return re.fullmatch(r"human|card\d+", path.rpartition("/")[2]) is not None


def fold(output: Output | None, step: Step, parent: str = "") -> Output | None:
    """`output` after `step`: a new one where the step opens one (below `parent`), itself where it says nothing."""
    if isinstance(output, ToolOutput):
        if _is_gate(step.path) and step.path != output.path:
            return _fold_gate(output, step)
        if rule := _ENTRY_RULES.get(step.type):
            return rule(output, step)
    return _opened(step, parent) or output


def _opened(step: Step, parent: str) -> Output | None:
    place: dict[str, Any] = {"path": step.path, "position": step.id, "parent": parent, "created_at": step.time}
    data = step.payload
    if step.type == "action_call":
        return _opened_entry(step, place) if _opens_entry(step) else None
    if step.type == "action_result":
        if data.get("code") != "parse_failure":
            return None
        return RetryOutput(raw=str(data.get("raw", "")), message=str(data.get("message", "")), **place)
    model = _KINDS.get(step.type)
    if model is None or step.type in ("tool", "retry"):
        return None
    fields = {name: value for name, value in data.items() if name in model.model_fields and name not in place}
    if step.type == "text" and step.actor == "system":
        fields.setdefault("role_hint", "system")
    try:
        return model.model_validate({**fields, **place, "type": step.type})
    except ValidationError:
        return Output(type=step.type, **place)  # the kind has become another since


def _opens_entry(step: Step) -> bool:
    """A model's call of anything, a policy's call of a tool, and a question that a policy asks a person."""
    if step.payload.get("policy") == "human":
        return True  # below a tool's entry it never comes here: there it is that entry's gate. A model's is only a call
    return step.actor == "model" or bool(step.payload.get("tool"))


def _opened_entry(step: Step, place: dict[str, Any]) -> ToolOutput:
    data = step.payload
    entry = ToolOutput(
        tool=data.get("policy", ""),
        call_id=data.get("call_id", ""),
        input=data.get("payload", {}),
        raw=data.get("raw"),
        **place,
    )
    return _ask(entry, step) if entry.tool == "human" and not asked_for(step) else entry


def _ask(entry: ToolOutput, step: Step) -> ToolOutput:
    asked = step.payload.get("payload", {})
    known = {name: asked[name] for name in _ASKED if name in asked}
    approval = _approval({"path": step.path, "requested_at": step.time, **known})
    return entry.model_copy(update={"approval": approval, "result": Pending(reason=approval.reason)})


_ASKED = ("ask", "reason", "risk", "digest", "facts", "change", "expires_at")
"""What a gate's own payload says of it."""


def _approval(fields: dict[str, Any]) -> Approval:
    """The gate with these fields; those that make no sense are left out, because a fold never raises."""
    try:
        datetime.fromisoformat(fields.get("expires_at") or "2000-01-01")
        return Approval(**fields)
    except (TypeError, ValueError):
        return Approval(path=fields["path"], requested_at=fields["requested_at"])


DECIDED = {
    "approve": "approved",
    "reject": "rejected",
    "run_again": "approved",
    "it_ran": "answered",
    "it_did_not": "answered",
    "answer": "answered",
    "expired": "expired",
    "cancelled": "cancelled",
}
"""The state of a gate after each decision."""


def _fold_gate(entry: ToolOutput, step: Step) -> ToolOutput:
    if step.type == "action_call":
        return _ask(entry, step)
    if step.type != "action_result" or entry.approval is None:
        return entry
    decision = step.payload.get("decision", "")
    changes: dict[str, Any] = {"approval": _decided(entry.approval, step, decision)}
    if not entry.settled:
        changes["result"] = Deferred()  # approved or not: nothing has begun until its start, or its result, says so
    if decision == "approve" and step.payload.get("input") is not None:
        changes |= {"input": step.payload["input"], "proposed": entry.proposed or entry.input}
    return entry.model_copy(update=changes)


def _decided(approval: Approval, step: Step, decision: str) -> Approval:
    said = step.payload
    told = {
        "state": DECIDED.get(decision, decision),
        "decided_by": step.actor,
        "decided_at": step.time,
        "via": said.get("via", ""),
        "note": said.get("reason") or said.get("note") or "",
        "facts": said.get("facts", approval.facts),  # an edit says what holds of the edited call
    }
    if "change" in said:  # and what that one would change
        told |= {"change": _change(said["change"]), "proposed": approval.change}
    return approval.model_copy(update=told)


def _change(said: JSON) -> Change | None:
    """The change that a decision tells; None where it makes no sense, because a fold never raises."""
    try:
        return Change.model_validate(said)
    except ValidationError:
        return None


def _fold_start(entry: ToolOutput, step: Step) -> ToolOutput:
    if step.actor == "system":  # it may have begun, which nobody saw: it does not run now
        return entry
    return entry.model_copy(update={"result": Running(), "started_at": entry.started_at or step.time})


def _fold_deferred(entry: ToolOutput, step: Step) -> ToolOutput:
    return entry.model_copy(update={"result": Deferred()})


def _fold_result(entry: ToolOutput, step: Step) -> ToolOutput:
    data = step.payload
    changes: dict[str, Any] = {"ended_at": step.time}
    if step.failed:
        error = {"code": str(data.get("code", "failed")), "message": str(data.get("message", ""))}
        changes["result"] = Failure(error=error)
        if entry.approval and entry.approval.state == "pending":  # whoever ends a call ends its gate
            changes["approval"] = entry.approval.model_copy(update={"state": "cancelled"})
    elif entry.tool == "human" and entry.approval:
        changes |= {
            "approval": _decided(entry.approval, step, data.get("decision", "")),
            "result": Success(output=data),
        }
    else:
        changes["result"] = Success(output=data.get("output"))
    return entry.model_copy(update=changes)


_ENTRY_RULES: dict[str, Callable[[ToolOutput, Step], ToolOutput]] = {
    "action_start": _fold_start,
    "action_deferred": _fold_deferred,
    "action_result": _fold_result,
}
"""How a step at an entry's own path changes it."""
