"""Events as programs get them: the `data` of a server-sent event, or one message of the WebSocket."""

from __future__ import annotations

from typing import Annotated, Literal, Union

from pydantic import Field, GetJsonSchemaHandler, RootModel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from conversations.display.shapes.base import OptionalTime, Shape, Time
from conversations.display.shapes.outputs import AnyOutput, ToolOutput
from conversations.display.shapes.record import Usage


class EventShape(Shape):
    """What all events have that a step caused."""

    type: str
    id: Annotated[
        int | None,
        Field(
            exclude_if=lambda id: id is None,
            description="The same as `seq`, and only in the last event of its step: resume from there.",
        ),
    ] = None
    seq: Annotated[int, Field(description="The number of the step that caused it.")]
    conversation: int
    prompt: int
    time: Time


class PromptCreated(EventShape):
    """The turn was created, and waits for a worker. `input` is null if nobody spoke."""

    type: Literal["prompt.created"]
    input: str | None


class PromptStarted(EventShape):
    """A worker started the turn for the first time."""

    type: Literal["prompt.started"]


class OutputCreated(EventShape):
    """A new output."""

    type: Literal["output.created"]
    output: AnyOutput


class OutputUpdated(EventShape):
    """An output changed: its call started, waits, or has a result."""

    type: Literal["output.updated"]
    output: AnyOutput


class ApprovalRequested(EventShape):
    """A call waits for a person."""

    type: Literal["approval.requested"]
    output: ToolOutput


class ApprovalDecided(EventShape):
    """An approval was decided by a person, or expired."""

    type: Literal["approval.decided"]
    output: ToolOutput


class PromptPaused(EventShape):
    """The turn waits for people, or for a time. `until`: when the first of its sleeps is over."""

    type: Literal["prompt.paused"]
    pending_action_count: int
    until: OptionalTime
    steps_used: int
    steps_remaining: int


class PromptResumed(EventShape):
    """The turn no longer waits for anybody."""

    type: Literal["prompt.resumed"]
    resumed_reason: str
    steps_remaining: int


class PromptEnded(EventShape):
    """The turn ended. This happens exactly once."""

    type: Literal["prompt.completed", "prompt.failed", "prompt.cancelled"]
    stop_reason: str
    usage: Usage


class TextDelta(Shape):
    """Streaming text of the call at `path`. It has no number.

    Keep what you have of the text up to `offset`, which counts Unicode code points, and append `text`. An `offset` of 0
    begins the text anew. All pieces of an answer, joined, are its text, and the last one comes before the
    `output.created` that has the whole. What a command prints may end early: its result has the whole.
    """

    type: Literal["text.delta"]
    prompt: int
    path: str
    offset: int
    text: str


AnyEvent = Union[  # noqa: UP007 - pydantic reads it
    PromptCreated, PromptStarted, OutputCreated, OutputUpdated, ApprovalRequested, ApprovalDecided, PromptPaused,
    PromptResumed, PromptEnded, TextDelta,
]  # fmt: skip


class Event(RootModel[Annotated[AnyEvent, Field(discriminator="type")]]):
    """One event: the `data` of a server-sent event, or one message of the WebSocket.

    A step may produce several events. The last of them has the step's number as its `id`: resume from there.
    """


class Encoded:
    """Says in a schema that the value is sent as JSON in a text."""

    @staticmethod
    def __get_pydantic_json_schema__(core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"type": "string", "contentMediaType": "application/json", "contentSchema": handler(core)}


class ServerSentEvent(Shape):
    """An event as it stands in a stream: its lines `event:`, `data:`, and, where a client may resume, `id:`."""

    event: Annotated[str, Field(description="The `type` of the Event.")]
    data: Annotated[Event, Encoded]
    id: Annotated[str, Field(description="The `id` of the Event.")] = ""


EVENTS: dict[str, type[EventShape]] = {
    "prompt.created": PromptCreated,
    "prompt.started": PromptStarted,
    "output.created": OutputCreated,
    "output.updated": OutputUpdated,
    "approval.requested": ApprovalRequested,
    "approval.decided": ApprovalDecided,
    "prompt.paused": PromptPaused,
    "prompt.resumed": PromptResumed,
    "prompt.completed": PromptEnded,
    "prompt.failed": PromptEnded,
    "prompt.cancelled": PromptEnded,
}
"""The shape of each event that a step causes, by its type."""
