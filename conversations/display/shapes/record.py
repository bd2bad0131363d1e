"""Conversations, prompts and steps as programs get them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from pydantic import Field, WithJsonSchema

from conversations.display.failure import UNEXPLAINED, failures_of, site_notice
from conversations.display.moments import TurnMoment
from conversations.display.shapes.base import Id, OptionalTime, Shape, Text, Time
from conversations.display.shapes.outputs import AnyOutput, File, output_shapes, outputs_of
from conversations.models import Conversation as ConversationRow
from conversations.models import Output as OutputRow
from conversations.models import Prompt as PromptRow
from conversations.models import State
from conversations.models import Step as StepRow
from conversations.usage.totals import NOTHING, Spent, of_conversations, of_prompts

PromptState = Annotated[str, WithJsonSchema({"type": "string", "enum": State.values})]


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

    @classmethod
    def of(cls, prompt: PromptRow) -> Self:
        """Return what a prompt has used so far."""
        return cls.read(of_prompts([prompt.conversation_id], [prompt.pk]).get(prompt.pk, NOTHING))


class Conversation(Shape):
    """A conversation. `active_prompt` is the turn that runs or waits, `seq` the last step, `page` a URL for people."""

    id: Id
    title: Text
    system_prompt: ChosenPrompt | None
    active_prompt: int | None
    archived: Annotated[bool, Field(description="Archived conversations are not in the list.")]
    seq: int
    created_at: Time
    updated_at: Time
    usage: Annotated[Usage, Field(description="The total of all its turns.")]
    page: str

    @classmethod
    def of(cls, row: ConversationRow) -> Self:
        """Return this conversation."""
        return cls.of_all([row])[0]

    @classmethod
    def of_all(cls, rows: Sequence[ConversationRow]) -> list[Self]:
        """Return these conversations with their usage, which is looked up once for all."""
        spent = of_conversations([row.pk for row in rows])
        return [cls._of(row, spent.get(row.pk, NOTHING)) for row in rows]

    @classmethod
    def _of(cls, row: ConversationRow, spent: Spent) -> Self:
        return cls.read(
            row,
            active_prompt=row.active_prompt_id,
            archived=row.archived_at is not None,
            usage=Usage.read(spent),
            page=row.get_absolute_url(),
        )


class QueuedPrompt(Shape):
    """A turn that the system starts in somebody else's conversation, as staff asked: only its owner can read it."""

    id: Id
    conversation: int
    state: PromptState

    @classmethod
    def of(cls, prompt: PromptRow) -> Self:
        """Return this prompt."""
        return cls.read(prompt, conversation=prompt.conversation_id)


class PromptHead(Shape):
    """A turn without its outputs. If `input` is null and it continues no turn, the system started it.

    `policy` is `agent` where the agent answers a message. For any other, `input` is what was asked, in words. It is
    empty if files were sent without a message.
    """

    id: Id
    conversation: int
    number: Annotated[int, Field(description="The number of the turn in its conversation, from 1.")]
    state: PromptState
    stop_reason: Annotated[Text, Field(description="Why it ended; null until then.")]
    policy: Annotated[str, Field(description="What runs.")]
    input: str | None
    files: Annotated[list[File], Field(description="The files sent with the input.")]
    model: str
    origin: Literal["user", "trigger", "workflow", "api", "command"]
    visible: bool
    continues: int | None
    repeats: Annotated[int | None, Field(description="The id of the turn whose message this one repeats.")]
    created_at: Time
    wake_at: Annotated[OptionalTime, Field(description="When the first of its sleeps is over.")]
    ended_at: OptionalTime

    @classmethod
    def of(cls, prompt: PromptRow, **more: Any) -> Self:
        """Return this prompt, with the fields that the shape has `more`."""
        return cls.read(
            prompt,
            conversation=prompt.conversation_id,
            files=[File.of(file) for file in prompt.files.all()],
            model=prompt.tier,
            continues=prompt.continues_id,
            repeats=prompt.repeats_id,
            **more,
        )


class TurnError(Shape):
    """Why a turn failed. A model's failure has a code of its own; for all others, it is the `stop_reason`."""

    code: str
    message: Annotated[str, Field(description="What happened and what to do about it, for people.")]
    details: Annotated[Text, Field(description="What the model server itself said.")]

    @classmethod
    def of(cls, prompt: PromptRow) -> Self | None:
        """Return why this turn failed; None if it did not fail."""
        if prompt.state != State.FAILED:
            return None
        if failure := failures_of([prompt], AnonymousUser()).get(prompt.pk):
            return cls(code=failure.code, message=failure.in_one_line, details=failure.said)
        texts = OutputRow.objects.of(prompt).filter(type="text").order_by("position")
        notice = site_notice(row.entry() for row in texts)
        return cls(code=prompt.stop_reason, message=notice.text if notice else UNEXPLAINED, details=None)


class Rounds(Shape):
    """Answers of the model: how many there were, and how many are allowed."""

    used: int
    granted: int


class Prompt(PromptHead):
    """A turn, with its outputs in reading order. Events after `seq` report what is new."""

    started_at: Annotated[OptionalTime, Field(description="When a worker first started it.")]
    pauses: Annotated[int, Field(description="How often it has waited for people.")]
    error: Annotated[TurnError | None, Field(description="Why it failed; null if it did not.")]
    rounds: Rounds
    outputs: list[AnyOutput]
    usage: Usage
    seq: int

    @classmethod
    def of(cls, prompt: PromptRow, **more: Any) -> Self:
        """Return this prompt. Until its first start has recorded how many rounds it may use, that is the site's limit.

        The seq is read before the outputs, so that no event after it is missed.
        """
        steps = StepRow.objects.of(prompt)
        last = steps.order_by("-seq").values_list("seq", flat=True).first()
        start = steps.filter(path="", type="action_start").order_by("seq").first()
        limits = (start.content.get("limits") if start else None) or {"rounds": settings.AGENTSITE_MAX_ROUNDS}
        return super().of(
            prompt,
            started_at=start.time if start else None,
            error=TurnError.of(prompt),
            rounds=Rounds(used=prompt.rounds, granted=limits["rounds"]),
            outputs=outputs_of(prompt),
            usage=Usage.of(prompt),
            seq=last or 0,
            **more,
        )


class Moment(Shape):
    """A turn as it was after its step `at`; `previous` and `next` are the steps before and after that one."""

    prompt: int
    at: int
    previous: int | None
    next: int | None
    state: PromptState
    stop_reason: Text
    rounds: Annotated[int, Field(description="Answers requested from the model until then.")]
    usage: Usage
    outputs: list[AnyOutput]

    @classmethod
    def of(cls, moment: TurnMoment) -> Self:
        """Return this moment."""
        ids = dict(OutputRow.objects.of(moment.prompt).values_list("position", "pk"))
        return cls.read(
            moment,
            prompt=moment.prompt.pk,
            previous=moment.before,
            next=moment.after,
            stop_reason=moment.standing.stop_reason,
            rounds=moment.standing.counts.get("rounds", 0),
            outputs=output_shapes(moment.outputs, ids),
        )


class Step(Shape):
    """One thing that happened, as recorded. `digest` chains it to the step before."""

    seq: int
    path: Annotated[str, Field(description="The path of its call; that of the turn itself is empty.")]
    actor: str
    type: str
    payload: dict[str, Any]
    time: Time
    digest: str

    @classmethod
    def of(cls, step: StepRow) -> Self:
        """Return this step."""
        return cls.read(step, payload=step.content)
