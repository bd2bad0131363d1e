"""What clients get, as types: the components of the API's description.

`conversations.display.json` makes the values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar, Union

from pydantic import BaseModel, ConfigDict, Field, RootModel

from agents.engine.decisions import STATES
from agents.engine.outputs import events, kinds
from conversations.models import State

T = TypeVar("T")
Id = Annotated[int, Field(description="Its id.")]
WHOLE = ConfigDict(json_schema_serialization_defaults_required=True)
"""Of the engine's types: what has a default there is always told."""


if TYPE_CHECKING:
    ApprovalState = str
    PromptState = str
else:  # the states of the tables, as the API's description lists them
    ApprovalState = Literal[("pending", *STATES)]
    PromptState = Literal[tuple(State.values)]


class Shape(BaseModel):
    """The base: nothing is there that is not described."""

    model_config = ConfigDict(extra="forbid")


class ListPage(Shape, Generic[T]):
    """One page of a list; `next` and `previous` are the addresses of its neighbours."""

    count: int
    next: str | None
    previous: str | None
    results: list[T]


# Outputs


class File(Shape):
    """A file to download from `url`."""

    id: Id
    name: str
    media_type: str
    size: Annotated[int, Field(description="Bytes.")]
    sha256: str
    url: str


class Change(Shape):
    """A text before and after a call; `before` is null where there is none yet."""

    path: str
    before: str | None
    after: str


class Gate(Shape):
    """What a person was asked about a call, and what they decided. `digest` goes with the decision."""

    state: ApprovalState
    ask: Annotated[str, Field(description="`approve`, `question` or `interrupted`: which decisions there are.")]
    reason: str
    risk: str
    digest: str
    who: Annotated[str, Field(description="`another`: somebody else than who asked for the turn must approve it.")]
    facts: Annotated[list[str], Field(description="What else holds of the call and should be known.")]
    requested_at: str
    expires_at: str
    decided_by: Annotated[str, Field(description="`user:<id>`, `system`; empty while it waits.")]
    decided_at: str
    via: Annotated[str, Field(description="`page`, `admin`, `api` or `system`.")]
    note: str
    change: Annotated[Change | None, Field(description="What the call would make of a text.")]
    by_rule: str | None = None


class TextOutput(kinds.TextOutput):
    """Something said by the model, or by the system about the turn (`role_hint` is "system")."""

    model_config = WHOLE

    id: Id


class ToolOutput(kinds.ToolOutput):
    """A call and what became of it. `proposed` is what the agent asked for, if a person edited `input`."""

    model_config = WHOLE

    id: Id
    approval: Gate | None  # type: ignore[assignment]


class FileOutput(kinds.Output):
    """A file that a tool made; null where it was lost."""

    model_config = WHOLE

    id: Id
    type: Literal["file"]
    file: File | None
    summary: str


class WidgetOutput(kinds.WidgetOutput):
    """Something to look at; `fallback` says it in words."""

    model_config = WHOLE

    id: Id


class ReasoningOutput(kinds.ReasoningOutput):
    """A summary of the model's reasoning."""

    model_config = WHOLE

    id: Id


class RetryOutput(kinds.RetryOutput):
    """An answer of the model that could not be read."""

    model_config = WHOLE

    id: Id


class OtherOutput(kinds.Output):
    """A kind that the site's own apps add, with fields of its own."""

    model_config = WHOLE | ConfigDict(extra="allow")

    id: Id


AnyOutput = Union[  # noqa: UP007 - pydantic reads it
    TextOutput, ToolOutput, FileOutput, WidgetOutput, ReasoningOutput, RetryOutput, OtherOutput
]


class Approval(ToolOutput):
    """A call that a person was asked about: its output, and whose it is."""

    approval: Gate
    conversation: int
    prompt: int
    owner: Annotated[str, Field(description="The name of the user whose conversation it is.")]


class Problem(Shape):
    """What went wrong: a code for programs, which never changes, and what to do."""

    model_config = ConfigDict(extra="allow")

    code: str
    message: str


class Error(Shape):
    """Every error. Some say more: `fields`, `prompt`, `approval`, `retry_after`."""

    error: Problem


class Verdict(Shape):
    """What one decision of several came to: `approval` where it was taken, `error` where it was not."""

    id: int
    status: Annotated[int, Field(description="What it would have been answered with alone.")]
    approval: Approval | None = None
    error: Problem | None = None


class Verdicts(Shape):
    """The verdicts, in the order of the decisions."""

    results: list[Verdict]


# Prompts and conversations


class ChosenPrompt(Shape):
    """A system prompt."""

    id: Id
    name: str


class Usage(Shape):
    """Tokens, and the models that answered. `cost_usd` is null where no price is known."""

    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    total_tokens: int
    cost_usd: float | None
    models: list[str]


class Conversation(Shape):
    """A conversation. `active_prompt` is the turn that runs or waits, `seq` its last step, `page` is for people."""

    id: Id
    title: str
    system_prompt: ChosenPrompt | None
    active_prompt: int | None
    archived: Annotated[bool, Field(description="Whether it was put away: it is not in the list.")]
    seq: int
    created_at: str
    updated_at: str
    usage: Annotated[Usage, Field(description="All its turns together.")]
    page: str


class PromptHead(Shape):
    """A turn, without what came of it. It was asked by the system where `input` is null and it continues none."""

    id: Id
    conversation: int
    number: Annotated[int, Field(description="Counts from 1 in its conversation.")]
    state: PromptState
    stop_reason: str
    input: str | None
    files: Annotated[list[File], Field(description="What was given with the input.")]
    model: str
    origin: Literal["user", "trigger", "workflow", "api"]
    visible: bool
    continues: int | None
    repeats: Annotated[int | None, Field(description="The turn whose message this one asks again.")]
    created_at: str
    ended_at: str | None


class Rounds(Shape):
    """Answers of the model: how many there were, and how many there may be."""

    used: int
    granted: int


class Prompt(PromptHead):
    """A turn, with its outputs in reading order. Events after `seq` tell what is new."""

    rounds: Rounds
    outputs: list[AnyOutput]
    usage: Usage
    seq: int


class Spending(Usage):
    """Usage over a span of time. `unpriced` counts the answers whose price is not known."""

    answers: int
    unpriced: int
    known_usd: Annotated[float, Field(description="The cost of the answers with a price.")]


class Quota(Shape):
    """How much you may ask; null: no limit."""

    running_prompts: Annotated[int | None, Field(description="Turns that run or queue at a time.")]
    tokens_a_day: Annotated[int | None, Field(description="Tokens of the last 24 hours, input and output.")]


class OwnUsage(Shape):
    """What your conversations used, deleted ones too, and how much they may."""

    last_24_hours: Spending
    last_30_days: Spending
    running_prompts: Annotated[int, Field(description="Turns that run or queue now.")]
    quota: Quota


class Moment(Shape):
    """A turn as it stood after its step `at`; `previous` and `next` are the steps around that one."""

    prompt: int
    at: int
    previous: int | None
    next: int | None
    state: PromptState
    stop_reason: str
    rounds: Annotated[int, Field(description="Answers of the model asked for until then.")]
    usage: Usage
    outputs: list[AnyOutput]


class Step(Shape):
    """One thing that happened, as it is recorded. `digest` chains it to the step before."""

    seq: int
    path: str
    actor: str
    type: str
    payload: dict[str, Any]
    time: str
    digest: str


class ConversationPage(ListPage[Conversation]):
    """Conversations."""


class PromptHeadPage(ListPage[PromptHead]):
    """Prompts."""


class StepPage(ListPage[Step]):
    """Steps by seq."""


class ApprovalPage(ListPage[Approval]):
    """Approvals."""


# Events


class OutputCreated(events.OutputCreated):
    """A new output."""

    model_config = WHOLE

    output: AnyOutput  # type: ignore[assignment]


class OutputUpdated(events.OutputUpdated):
    """An output changed: its call began, waits, or has its result."""

    model_config = WHOLE

    output: AnyOutput  # type: ignore[assignment]


class ApprovalRequested(events.ApprovalRequested):
    """A call waits for a person."""

    model_config = WHOLE

    output: ToolOutput  # type: ignore[assignment]


class ApprovalDecided(events.ApprovalDecided):
    """A person, a rule, or time decided."""

    model_config = WHOLE

    output: ToolOutput  # type: ignore[assignment]


AnyEvent = Union[  # noqa: UP007 - pydantic reads it
    events.PromptCreated, events.PromptStarted, OutputCreated, OutputUpdated, ApprovalRequested, ApprovalDecided,
    events.PromptPaused, events.PromptResumed, events.PromptEnded, events.TextDelta,
]  # fmt: skip


class Event(RootModel[Annotated[AnyEvent, Field(discriminator="type")]]):
    """One event: the `data` of a server-sent event, or one message of the WebSocket.

    Several may come of one step. The last of them carries its number as `id` too: come back with that one.
    """
