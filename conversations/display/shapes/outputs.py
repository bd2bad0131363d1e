"""Outputs as programs get them: files, calls with their gates and results, texts and other kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self, Union

from django.urls import reverse
from pydantic import ConfigDict, Field, WithJsonSchema

from agents.engine.decisions import STATES, Ask
from agents.engine.outputs import kinds
from agents.engine.outputs.timeline import reading_order
from conversations.display.shapes.base import Id, OptionalTime, Shape, Text, Time
from conversations.models import File as FileRow
from conversations.models import Output as OutputRow
from conversations.models import Prompt as PromptRow

ApprovalState = Annotated[str, WithJsonSchema({"type": "string", "enum": ["pending", *STATES]})]
AskedAs = Annotated[str, WithJsonSchema({"type": "string", "enum": [ask.value for ask in Ask]})]


class File(Shape):
    """A file; download it from `url`."""

    id: Id
    name: str
    media_type: str
    size: Annotated[int, Field(description="Bytes.")]
    sha256: str
    url: str

    @classmethod
    def of(cls, file: FileRow) -> Self:
        """Return this file."""
        return cls.read(file, url=reverse("api-file", args=[file.pk]))


class Change(Shape):
    """A text before and after a call; `before` is null if the text does not exist yet."""

    path: str
    before: str | None
    after: str


class Gate(Shape):
    """What a person was asked about a call, and what they decided. Send `digest` with the decision."""

    state: ApprovalState
    ask: Annotated[AskedAs, Field(description="Determines which decisions are possible.")]
    title: Annotated[Text, Field(description="What the tool does, in words.")]
    preview: Annotated[Text, Field(description="How its input is shown: `command`, `program`, `diff`, or null.")]
    undoable: Annotated[Text, Field(description="What the tool says about undoing the call.")]
    reason: Text
    risk: Text
    digest: Text
    who: Annotated[
        Text, Field(description="`another`: somebody other than the person who asked for the turn must approve it.")
    ]
    grantable: Annotated[
        Text, Field(description="What `remember` may grant of calls like it: `exact`, `fields` (and exact), or null.")
    ]
    edited_by: Annotated[
        Text, Field(description="`user:<id>` of who edited the call, where somebody else must then approve it.")
    ]
    facts: Annotated[list[str], Field(description="What else one should know about the call.")]
    requested_at: OptionalTime
    expires_at: OptionalTime
    decided_by: Annotated[Text, Field(description="`user:<id>` or `system`; null while it waits.")]
    decided_at: OptionalTime
    via: Annotated[Text, Field(description="`page`, `admin`, `api` or `system`.")]
    note: Text
    change: Annotated[Change | None, Field(description="How the call would change a text.")]


class Success(Shape):
    """The call succeeded; `output` is what it returned."""

    type: Literal["success"]
    output: Any


class CallError(Shape):
    """Why a call failed: a code for programs, and a message."""

    code: str
    message: str


class Failure(Shape):
    """The call failed, was refused, or was stopped."""

    type: Literal["error"]
    error: CallError


class Pending(Shape):
    """The call waits for a person, who is shown `reason`."""

    type: Literal["pending"]
    reason: Text


class Deferred(Shape):
    """The call waits for a gate of its batch, or was approved and has not begun."""

    type: Literal["deferred"]


class Running(Shape):
    """The call is running."""

    type: Literal["running"]


CallResult = Annotated[Success | Failure | Pending | Deferred | Running, Field(discriminator="type")]


class OutputShape(Shape):
    """What all outputs have."""

    id: Id
    type: str
    path: Annotated[str, Field(description="The path of the call it belongs to; that of the turn itself is empty.")]
    position: Annotated[int, Field(description="The seq of the step that opened it. It never changes.")]
    parent: Annotated[Text, Field(description="The path of the call that emitted it; null at the top.")]
    created_at: Time


class TextOutput(OutputShape):
    """A text from the model, or from the system about the turn."""

    type: Literal["text"]
    text: str
    role_hint: Annotated[Text, Field(description="`system` for a text about the turn; null for the model's.")]
    partial: Annotated[bool, Field(description="Whether it is incomplete, because the model was stopped.")]


class ToolOutput(OutputShape):
    """A call and its result. `proposed` is the agent's input if a person edited `input`.

    A question of a policy is a call of the tool `human`. Its `input` has the `question`, and either `choices`, or the
    JSON Schema of its answer as `schema`, or neither: then it is answered in words. If the policy refused an answer and
    asks again, that is its `draft`, with its `problems` by field. Its result is the decision, with the `answer`.
    """

    type: Literal["tool"]
    tool: str
    call_id: Annotated[Text, Field(description="The model's own name for the call.")]
    input: dict[str, Any]
    proposed: dict[str, Any] | None
    raw: Annotated[str | None, Field(description="The model's arguments as it wrote them, if they cannot be read.")]
    started_at: OptionalTime
    ended_at: OptionalTime
    approval: Gate | None
    result: CallResult


class FileOutput(OutputShape):
    """A file that a tool made; null if it was lost."""

    type: Literal["file"]
    file: File | None
    summary: Text


class WidgetOutput(OutputShape):
    """Something to look at; `fallback` describes it in words."""

    type: Literal["widget"]
    widget: str
    data: dict[str, Any]
    fallback: Text


class ReasoningOutput(OutputShape):
    """A summary of the model's reasoning."""

    type: Literal["reasoning"]
    text: str


class RetryOutput(OutputShape):
    """An answer of the model that could not be read: `raw` is all of it, and `message` says why."""

    type: Literal["retry"]
    raw: str
    message: Text


class ProgressOutput(OutputShape):
    """How far a policy says that it is: `done` of `total`, if that is known. `said` counts how often it said so."""

    type: Literal["progress"]
    done: int | float
    total: int | float | None
    text: Text
    said: int


class ResultOutput(OutputShape):
    """What the policy of the turn returned. An agent's answer is a text."""

    type: Literal["result"]
    output: Any


class OtherOutput(OutputShape):
    """A kind of output added by the site's own apps, with its own fields."""

    model_config = ConfigDict(extra="allow")


AnyOutput = Union[  # noqa: UP007 - pydantic reads it
    TextOutput, ToolOutput, FileOutput, WidgetOutput, ReasoningOutput, RetryOutput, ProgressOutput, ResultOutput,
    OtherOutput,
]  # fmt: skip

_SHAPES: dict[type[kinds.Output], type[OutputShape]] = {
    kinds.TextOutput: TextOutput,
    kinds.ToolOutput: ToolOutput,
    kinds.WidgetOutput: WidgetOutput,
    kinds.ReasoningOutput: ReasoningOutput,
    kinds.RetryOutput: RetryOutput,
    kinds.ProgressOutput: ProgressOutput,
    kinds.ResultOutput: ResultOutput,
}


def output_shape(entry: kinds.Output, row: int, files: Mapping[int, FileRow]) -> OutputShape:
    """Return one output. `row` is its id, by which it is decided; `files` the rows of the files that outputs name."""
    if isinstance(entry, kinds.FileOutput):
        file = files.get(entry.file)
        return FileOutput.read(entry, id=row, file=File.of(file) if file else None)
    if shape := _SHAPES.get(type(entry)):
        return shape.read(entry, id=row)
    return OtherOutput.model_validate({"id": row, **entry.model_dump(mode="json")})


def files_of(entries: Iterable[kinds.Output]) -> dict[int, FileRow]:
    """Return the rows of the files that these outputs name, by id."""
    return FileRow.objects.in_bulk({entry.file for entry in entries if isinstance(entry, kinds.FileOutput)})


def output_shapes(entries: Iterable[kinds.Output], ids: Mapping[int, int]) -> list[OutputShape]:
    """Return these outputs in reading order. `ids` are those of their rows, by position."""
    ordered = list(reading_order(entries))
    files = files_of(ordered)
    return [output_shape(entry, ids[entry.position], files) for entry in ordered]


def outputs_of(prompt: PromptRow) -> list[OutputShape]:
    """Return the outputs of a prompt in reading order, as they are now."""
    rows = OutputRow.objects.of(prompt)
    return output_shapes([row.entry() for row in rows], {row.position: row.pk for row in rows})


class Approval(ToolOutput):
    """A call that a person was asked about: its output, and where it belongs."""

    approval: Gate
    conversation: int
    prompt: int
    owner: Annotated[str, Field(description="The name of the user who owns the conversation.")]

    @classmethod
    def of(cls, row: OutputRow) -> Self:
        """Return this output, which has a gate."""
        place = {"conversation": row.conversation_id, "prompt": row.prompt_id}
        return cls.read(row.entry(), id=row.pk, **place, owner=row.conversation.owner.get_username())
