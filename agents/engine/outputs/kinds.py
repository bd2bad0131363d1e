"""The models of outputs: what the timeline can hold. `registry` registers the kinds, one by one."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, Union

from pydantic import BaseModel, ConfigDict, Field

from agents.engine.decisions import Ask
from agents.engine.ledger import JSON, Step
from agents.engine.outputs.change import Change
from agents.engine.schema import input_names


class Frozen(BaseModel):
    """The base class of models that are replaced, never changed."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Success(Frozen):
    """The call succeeded; `output` is what it returned."""

    type: Literal["success"] = "success"
    output: Any = None


class Failure(Frozen):
    """The call failed, was refused, or was stopped. `error` is `{code, message}`."""

    type: Literal["error"] = "error"
    error: dict[str, str]


class Pending(Frozen):
    """The call waits for a person, who is shown `reason`."""

    type: Literal["pending"] = "pending"
    reason: str


class Deferred(Frozen):
    """The call waits for a gate of its batch, or was approved and has not begun."""

    type: Literal["deferred"] = "deferred"


class Running(Frozen):
    """The call is running."""

    type: Literal["running"] = "running"


ToolResult = Union[Success, Failure, Pending, Deferred, Running]  # noqa: UP007 - pydantic reads it


Recorded = Annotated[str, Field(exclude_if=lambda text: not text)]
"""A text that is stored only if there is one: outputs from before the field was added are folded as they were."""


class Approval(Frozen):
    """The latest gate of a call: what a person is asked, and what they decided. Earlier gates are in the steps.

    `edited_by` is the actor whose edit it asks about, where four eyes are needed: they may not approve it themselves.
    `facts` and `change` describe the call as shown: what is true of it, and what it would change. If a person edited
    the call, they describe the edited one, and `proposed` is the change that the original call would have made.
    `title`, `preview` and `undoable` are the tool's; gates from before they were recorded have none of them.
    `grantable` says which calls like this one may be granted: none (""), `exact` or `fields`.
    """

    path: str
    state: str = "pending"
    ask: str = Ask.APPROVE.value
    title: Recorded = ""
    preview: Recorded = ""
    undoable: Recorded = ""
    reason: str = ""
    risk: str = ""
    digest: str = ""
    who: str = ""
    edited_by: str = ""
    grantable: Recorded = ""
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
    """One output in the timeline.

    `type` is the name of its kind. `position` is the id of the step that opened it and never changes. `parent` is the
    path of the entry whose call emitted it, "" at the top. The reading order is that of a tree: an entry, then what its
    call emitted (S24).

    Who shows one gives only the fields of its kind, as in `call.show(Receipt(number="12"))`: the rest is known once it
    stands in the timeline.
    """

    type: str = ""
    path: str = ""
    position: int = 0
    parent: str = ""
    created_at: str = ""

    @classmethod
    def opened_by(cls, step: Step, **defaults: JSON) -> Self:
        """Return the output that a step opens, with its payload as the fields and `defaults` for missing ones.

        Keys of the payload that are not fields of this model are ignored. Raises pydantic's ValidationError.
        """
        known = {key for name, field in cls.model_fields.items() for key in input_names(name, field)}
        said = {k: value for k, value in step.payload.items() if k in known and k not in Output.model_fields}
        return cls.model_validate({**defaults, **said, **place_of(step), "type": step.type})


def place_of(step: Step) -> dict[str, Any]:
    """Return the fields that place an output opened by this step; the timeline adds the parent."""
    return {"path": step.path, "position": step.id, "created_at": step.time}


class TextOutput(Output):
    """Text from the model, or from the system about the turn (`role_hint` is "system").

    `partial`: the text is incomplete, because a person stopped the model or its time was up.
    """

    type: Literal["text"] = "text"
    text: str
    role_hint: str = ""
    partial: bool = False


class ToolOutput(Output):
    """The entry of a call. `input` is what runs; `proposed` is what the model asked for, if a person edited it."""

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
        """Whether the call has its final result."""
        return self.result.type in ("success", "error")


class FileOutput(Output):
    """A file made by a tool: people download it, the model reads its summary (S8). `file` is the file's id."""

    type: Literal["file"] = "file"
    file: int
    name: str
    summary: str = ""


class WidgetOutput(Output):
    """Something for people to look at, never sent to the model (S9). `fallback` describes it in words."""

    type: Literal["widget"] = "widget"
    widget: str
    data: dict[str, Any] = {}
    fallback: str = ""


class ReasoningOutput(Output):
    """A summary of the model's reasoning, shown only among the details."""

    type: Literal["reasoning"] = "reasoning"
    text: str


class RetryOutput(Output):
    """An answer that could not be read. The model sees it with the error; people see it only among the details."""

    type: Literal["retry"] = "retry"
    raw: str
    message: str


class ProgressOutput(Output):
    """How far a policy says that it is: `done` of `total`, if that is known. `said` counts how often it said so."""

    type: Literal["progress"] = "progress"
    done: int | float
    total: int | float | None = None
    text: str = ""
    said: int = 1


class ResultOutput(Output):
    """What the policy of a turn returned, if that is not an agent, whose answer is its last text."""

    type: Literal["result"] = "result"
    output: Any = None
