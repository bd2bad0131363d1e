"""Response types that only the API has: pages of lists, errors, verdicts, uploads and usage.

Those of the record and of events are in `conversations.display.shapes`. All are components of the OpenAPI document.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, RootModel

from conversations.display.shapes.base import Id, Shape, Text, Time
from conversations.display.shapes.grants import Grant
from conversations.display.shapes.outputs import Approval
from conversations.display.shapes.record import Conversation, Prompt, PromptHead, QueuedPrompt, Step, Usage
from conversations.models import PendingFile
from conversations.usage import quotas, storage
from conversations.usage.totals import DAY, MONTH, KeyUsage, of_person

T = TypeVar("T")


class ListPage(Shape, Generic[T]):
    """One page of a list; `next` and `previous` are the URLs of the neighbouring pages."""

    count: int
    next: str | None
    previous: str | None
    results: list[T]


class ConversationPage(ListPage[Conversation]):
    """A page of conversations."""


class PromptHeadPage(ListPage[PromptHead]):
    """A page of prompts."""


class StepPage(ListPage[Step]):
    """A page of steps, by seq."""


class ApprovalPage(ListPage[Approval]):
    """A page of approvals."""


class GrantPage(ListPage[Grant]):
    """A page of grants."""


class Approved(Approval):
    """An approval after it was approved, and the grant that was given with it."""

    grant: Annotated[Grant | None, Field(description="Null without `remember`.")]


class SystemPrompt(Shape):
    """A system prompt that can be chosen for a conversation. `version`: the number of its latest text."""

    id: Id
    name: str
    version: int
    is_default: Annotated[bool, Field(description="Whether it is that of conversations for which none is chosen.")]


class SystemPromptPage(ListPage[SystemPrompt]):
    """A page of system prompts."""


class StartedPrompt(RootModel[Prompt | QueuedPrompt]):
    """The turn that was started. Staff get only its id, conversation and state if it is in somebody else's."""


class Upload(Shape):
    """A file that you uploaded, and no run has taken yet."""

    token: Annotated[str, Field(description="What a run is given for it.")]
    name: str
    media_type: str
    size: Annotated[int, Field(description="Bytes.")]
    sha256: str
    created_at: Time

    @classmethod
    def of(cls, row: PendingFile) -> Self:
        """Return this file."""
        return cls.read(row)


class UploadPage(ListPage[Upload]):
    """A page of uploads."""


class Problem(BaseModel):
    """What went wrong: a code for programs, which never changes, and a message that says what to do."""

    model_config = ConfigDict(extra="allow")

    code: str
    message: str


class Error(Shape):
    """Every error. Some have more fields: `fields`, `prompt`, `approval`, `output`, `retry_after`."""

    error: Problem


class Verdict(Shape):
    """The outcome of one of several decisions: `approval` if it was accepted, `error` if not."""

    id: int
    status: Annotated[int, Field(description="The HTTP status that a single decision would have returned.")]
    approval: Annotated[Approval | None, Field(exclude_if=lambda approval: approval is None)] = None
    error: Annotated[Problem | None, Field(exclude_if=lambda error: error is None)] = None


class Verdicts(Shape):
    """The verdicts, in the order of the decisions."""

    results: list[Verdict]


class KeySpending(Shape):
    """What one API key used of one model under `/v1`. `unpriced` counts the answers whose price is not known."""

    key: Annotated[int, Field(description="The id of the key.")]
    name: Annotated[Text, Field(description="The name of the key. Null if it was revoked and is not known any more.")]
    revoked: bool
    model: Annotated[Text, Field(description="Null for requests to models that did not answer, or for no model.")]
    requests: int
    answers: int
    estimated: Annotated[int, Field(description="Of the answers, those whose tokens are an estimate.")]
    unpriced: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int
    total_tokens: int
    cost_usd: float | None
    known_usd: Annotated[float, Field(description="The cost of the answers whose price is known.")]

    @classmethod
    def of(cls, usage: KeyUsage) -> Self:
        """Return this usage."""
        named = {name: getattr(usage, name) for name in ("key", "name", "revoked", "model", "requests", "estimated")}
        return cls.read(usage.spent, **named, known_usd=usage.spent.cost_nano_usd / 1e9)


class Spending(Usage):
    """Usage over a period. `unpriced` counts the answers whose price is not known."""

    answers: int
    unpriced: int
    known_usd: Annotated[float, Field(description="The cost of the answers whose price is known.")]
    requests: Annotated[int, Field(description="Requests under `/v1`.")]
    keys: Annotated[list[KeySpending], Field(description="The part of your keys under `/v1`, by key and model.")]

    @classmethod
    def in_period(cls, person: int, span: timedelta) -> Self:
        """Return what the user with this id used within the last `span`."""
        used = of_person(person, span)
        return cls.read(
            used.spent,
            known_usd=used.spent.cost_nano_usd / 1e9,
            requests=used.requests,
            keys=[KeySpending.of(each) for each in used.keys],
        )


class Quota(Shape):
    """Your limits; null means no limit."""

    running_prompts: Annotated[int | None, Field(description="Turns that may run or be queued at the same time.")]
    tokens_a_day: Annotated[int | None, Field(description="Input and output tokens within 24 hours.")]
    requests_a_minute: Annotated[int | None, Field(description="Requests under `/v1`, with all your keys together.")]
    requests_a_day: Annotated[int | None, Field(description="The same within 24 hours.")]
    storage_bytes: Annotated[int | None, Field(description="Bytes of all your files and workspaces.")]


class OwnUsage(Shape):
    """The usage of your conversations, including deleted ones, and of your keys under `/v1`; and your limits."""

    last_24_hours: Spending
    last_30_days: Spending
    running_prompts: Annotated[
        int, Field(description="Turns that are running or queued now, other than those that the system started.")
    ]
    storage_bytes: Annotated[int, Field(description="Bytes that your files and workspaces take.")]
    quota: Quota

    @classmethod
    def of(cls, person: int) -> Self:
        """Return the usage and the limits of the user with this id."""
        limits = quotas.limits(person)
        return cls(
            last_24_hours=Spending.in_period(person, DAY),
            last_30_days=Spending.in_period(person, MONTH),
            running_prompts=quotas.running(person),
            storage_bytes=storage.used(person),
            quota=Quota(
                running_prompts=limits.running_prompts or None,
                tokens_a_day=limits.tokens_a_day or None,
                requests_a_minute=limits.requests_a_minute or None,
                requests_a_day=limits.requests_a_day or None,
                storage_bytes=storage.limit(person) or None,
            ),
        )
