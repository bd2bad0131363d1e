"""Response types: the components of the OpenAPI document.

`conversations.display.json` makes the values.
"""

from __future__ import annotations

from typing import Annotated, Any, Generic, Literal, TypeVar, Union

from pydantic import BaseModel, ConfigDict, Field, RootModel

from agents.engine.decisions import STATES
from agents.engine.outputs import events, kinds
from conversations.models import State

T = TypeVar("T")
Id = Annotated[int, Field(description="Its id.")]


ApprovalState = Annotated[str, Field(json_schema_extra={"enum": ["pending", *STATES]})]
PromptState = Annotated[str, Field(json_schema_extra={"enum": State.values})]


class Shape(BaseModel):
    """The base of all response types: only documented fields are allowed."""

    model_config = ConfigDict(extra="forbid")


class ListPage(Shape, Generic[T]):
    """One page of a list; `next` and `previous` are the URLs of the neighbouring pages."""

    count: int
    next: str | None
    previous: str | None
    results: list[T]


class Whole(BaseModel):
    """One of the engine's types as programs get it: fields with a default are always present."""

    model_config = ConfigDict(json_schema_serialization_defaults_required=True)


class Row(Whole):
    """The same, stored under an id."""

    id: Id


# Outputs


class File(Shape):
    """A file; download it from `url`."""

    id: Id
    name: str
    media_type: str
    size: Annotated[int, Field(description="Bytes.")]
    sha256: str
    url: str


class Upload(Shape):
    """A file that you uploaded, and no run has taken yet."""

    token: Annotated[str, Field(description="What a run is given for it.")]
    name: str
    media_type: str
    size: Annotated[int, Field(description="Bytes.")]
    sha256: str
    created_at: str


class Change(Shape):
    """A text before and after a call; `before` is null if the text does not exist yet."""

    path: str
    before: str | None
    after: str


class Gate(Shape):
    """What a person was asked about a call, and what they decided. Send `digest` with the decision."""

    state: ApprovalState
    ask: Annotated[
        str, Field(description="`approve`, `question` or `interrupted`: determines which decisions are possible.")
    ]
    title: Annotated[str, Field(description="What the tool does, in words.")]
    preview: Annotated[str, Field(description="How its input is shown: `command`, `diff`, or empty.")]
    reason: str
    risk: str
    digest: str
    who: Annotated[
        str, Field(description="`another`: somebody other than the person who asked for the turn must approve it.")
    ]
    edited_by: Annotated[
        str, Field(description="`user:<id>` of who edited the call, where somebody else must then approve it.")
    ]
    facts: Annotated[list[str], Field(description="What else one should know about the call.")]
    requested_at: str
    expires_at: str
    decided_by: Annotated[str, Field(description="`user:<id>` or `system`; empty while it waits.")]
    decided_at: str
    via: Annotated[str, Field(description="`page`, `admin`, `api` or `system`.")]
    note: str
    change: Annotated[Change | None, Field(description="How the call would change a text.")]
    by_rule: str | None = None


class TextOutput(Row, kinds.TextOutput):
    """A text from the model, or from the system about the turn (`role_hint` is "system")."""


class ToolOutput(Row, kinds.ToolOutput):
    """A call and its result. `proposed` is the agent's input if a person edited `input`.

    A question of a policy is a call of the tool `human`. Its `input` has the `question`, and either `choices`, or the
    JSON Schema of its answer as `schema`, or neither: then it is answered in words. If the policy refused an answer and
    asks again, that is its `draft`, with its `problems` by field. Its result is the decision, with the `answer`.
    """

    approval: Gate | None  # type: ignore[assignment]


class FileOutput(Row, kinds.Output):
    """A file that a tool made; null if it was lost."""

    type: Literal["file"]
    file: File | None
    summary: str


class WidgetOutput(Row, kinds.WidgetOutput):
    """Something to look at; `fallback` describes it in words."""


class ReasoningOutput(Row, kinds.ReasoningOutput):
    """A summary of the model's reasoning."""


class RetryOutput(Row, kinds.RetryOutput):
    """An answer of the model that could not be read."""


class ResultOutput(Row, kinds.ResultOutput):
    """What the policy of the turn returned. An agent's answer is a text."""


class OtherOutput(Row, kinds.Output):
    """A kind of output added by the site's own apps, with its own fields."""

    model_config = ConfigDict(extra="allow")


AnyOutput = Union[  # noqa: UP007 - pydantic reads it
    TextOutput, ToolOutput, FileOutput, WidgetOutput, ReasoningOutput, RetryOutput, ResultOutput, OtherOutput
]


class Approval(ToolOutput):
    """A call that a person was asked about: its output, and where it belongs."""

    approval: Gate
    conversation: int
    prompt: int
    owner: Annotated[str, Field(description="The name of the user who owns the conversation.")]


class Problem(Shape):
    """What went wrong: a code for programs, which never changes, and a message that says what to do."""

    model_config = ConfigDict(extra="allow")

    code: str
    message: str


class Error(Shape):
    """Every error. Some have more fields: `fields`, `prompt`, `approval`, `retry_after`."""

    error: Problem


class Verdict(Shape):
    """The outcome of one of several decisions: `approval` if it was accepted, `error` if not."""

    id: int
    status: Annotated[int, Field(description="The HTTP status that a single decision would have returned.")]
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
    """Tokens, and the models that answered. `cost_usd` is null if no price is known."""

    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    total_tokens: int
    cost_usd: float | None
    models: list[str]


class Conversation(Shape):
    """A conversation. `active_prompt` is the turn that runs or waits, `seq` the last step, `page` a URL for people."""

    id: Id
    title: str
    system_prompt: ChosenPrompt | None
    active_prompt: int | None
    archived: Annotated[bool, Field(description="Archived conversations are not in the list.")]
    seq: int
    created_at: str
    updated_at: str
    usage: Annotated[Usage, Field(description="The total of all its turns.")]
    page: str


class PromptHead(Shape):
    """A turn without its outputs. If `input` is null and it continues no turn, the system started it.

    `policy` is `agent` where the agent answers a message. For any other, `input` is what was asked, in words.
    """

    id: Id
    conversation: int
    number: Annotated[int, Field(description="The number of the turn in its conversation, from 1.")]
    state: PromptState
    stop_reason: str
    policy: Annotated[str, Field(description="What runs.")]
    input: str | None
    files: Annotated[list[File], Field(description="The files sent with the input.")]
    model: str
    origin: Literal["user", "trigger", "workflow", "api", "command"]
    visible: bool
    continues: int | None
    repeats: Annotated[int | None, Field(description="The id of the turn whose message this one repeats.")]
    created_at: str
    wake_at: Annotated[str | None, Field(description="When the first of its sleeps is over.")]
    ended_at: str | None


class Rounds(Shape):
    """Answers of the model: how many there were, and how many are allowed."""

    used: int
    granted: int


class Prompt(PromptHead):
    """A turn, with its outputs in reading order. Events after `seq` report what is new."""

    started_at: Annotated[str | None, Field(description="When a worker first started it.")]
    pauses: Annotated[int, Field(description="How often it has waited for people.")]
    rounds: Rounds
    outputs: list[AnyOutput]
    usage: Usage
    seq: int


class Spending(Usage):
    """Usage over a period. `unpriced` counts the answers whose price is not known."""

    answers: int
    unpriced: int
    known_usd: Annotated[float, Field(description="The cost of the answers whose price is known.")]


class Quota(Shape):
    """Your limits; null means no limit."""

    running_prompts: Annotated[int | None, Field(description="Turns that may run or be queued at the same time.")]
    tokens_a_day: Annotated[int | None, Field(description="Input and output tokens within 24 hours.")]
    storage_bytes: Annotated[int | None, Field(description="Bytes of all your files and workspaces.")]


class OwnUsage(Shape):
    """The usage of your conversations, including deleted ones, and your limits."""

    last_24_hours: Spending
    last_30_days: Spending
    running_prompts: Annotated[int, Field(description="Turns that are running or queued now.")]
    storage_bytes: Annotated[int, Field(description="Bytes that your files and workspaces take.")]
    quota: Quota


class Moment(Shape):
    """A turn as it was after its step `at`; `previous` and `next` are the steps before and after that one."""

    prompt: int
    at: int
    previous: int | None
    next: int | None
    state: PromptState
    stop_reason: str
    rounds: Annotated[int, Field(description="Answers requested from the model until then.")]
    usage: Usage
    outputs: list[AnyOutput]


class Step(Shape):
    """One thing that happened, as recorded. `digest` chains it to the step before."""

    seq: int
    path: str
    actor: str
    type: str
    payload: dict[str, Any]
    time: str
    digest: str


class ConversationPage(ListPage[Conversation]):
    """A page of conversations."""


class UploadPage(ListPage[Upload]):
    """A page of uploads."""


class PromptHeadPage(ListPage[PromptHead]):
    """A page of prompts."""


class StepPage(ListPage[Step]):
    """A page of steps, by seq."""


class ApprovalPage(ListPage[Approval]):
    """A page of approvals."""


# Events


class OutputCreated(Whole, events.OutputCreated):
    """A new output."""

    output: AnyOutput  # type: ignore[assignment]


class OutputUpdated(Whole, events.OutputUpdated):
    """An output changed: its call started, waits, or has a result."""

    output: AnyOutput  # type: ignore[assignment]


class ApprovalRequested(Whole, events.ApprovalRequested):
    """A call waits for a person."""

    output: ToolOutput  # type: ignore[assignment]


class ApprovalDecided(Whole, events.ApprovalDecided):
    """An approval was decided: by a person, by a rule, or because it expired."""

    output: ToolOutput  # type: ignore[assignment]


AnyEvent = Union[  # noqa: UP007 - pydantic reads it
    events.PromptCreated, events.PromptStarted, OutputCreated, OutputUpdated, ApprovalRequested, ApprovalDecided,
    events.PromptPaused, events.PromptResumed, events.PromptEnded, events.TextDelta,
]  # fmt: skip


class Event(RootModel[Annotated[AnyEvent, Field(discriminator="type")]]):
    """One event: the `data` of a server-sent event, or one message of the WebSocket.

    A step may produce several events. The last of them has the step's number as its `id`: resume from there.
    """
