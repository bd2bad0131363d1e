"""The kinds of outputs: what an entry of the timeline can be, and where a new kind is registered."""

from __future__ import annotations

from typing import Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.engine.decisions import Ask
from agents.engine.errors import RegistryError, ToolError
from agents.engine.ledger import JSON
from agents.engine.outputs.change import Change


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
    ask: str = Ask.APPROVE.value
    reason: str = ""
    risk: str = ""
    digest: str = ""
    who: str = ""
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

    `partial`: the model had said so much when a person stopped it, or its time was up.
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


def kind_of(type: str) -> type[Output] | None:
    """The model of the outputs that steps of this type open; None where they open none by themselves."""
    return None if type in ("tool", "retry") else _KINDS.get(type)


def load_output(data: dict[str, JSON]) -> Output:
    """An output from its stored JSON.

    A bare Output where its kind is no longer registered, or has become another since.
    """
    try:
        return _KINDS.get(data["type"], Output).model_validate(data)
    except ValidationError:
        return Output.model_validate(data)
