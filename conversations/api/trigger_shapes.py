"""Request bodies and response types of triggers: components of the OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from django.conf import settings
from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from agents.engine.root import AGENT
from agents.plugins.triggers import words
from agents.plugins.triggers.schedule import SECONDS_MOST, TEXT_MOST, YEARS, Schedule, zone_named
from conversations.api.bodies import Body, Text, Tier
from conversations.api.shapes import ListPage
from conversations.display.shapes.base import Id, OptionalTime, Shape, Time
from conversations.display.shapes.base import Text as OptionalText
from conversations.models import Firing as FiringRow
from conversations.models import FiringState, HookSecret, Overlap
from conversations.models import Trigger as TriggerRow
from conversations.models.trigger import STATES
from conversations.triggers.managing import EXPRESSION_MOST, NAME_MOST
from conversations.triggers.mapping import PATH_MOST


def _as_moment(value: object) -> datetime:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    if moment is None or moment.year not in YEARS:
        raise PydanticCustomError(
            "moment", "Give a date and a time, such as 2027-03-01T09:00 in the zone, or 2027-03-01T08:00:00Z"
        )
    return moment


Name = Annotated[Text, Field(max_length=NAME_MOST, description='What people call it. "": the beginning of its text.')]
Overlaps = Annotated[
    Literal["skip", "queue"],
    Field(description="What happens if it is due while its last turn has not ended: it is left out, or waits."),
]


class MappedFrom(Body):
    """Where a field of a workflow comes from: exactly one of a `path` in the payload, and a `value`."""

    path: Annotated[Text, Field(max_length=PATH_MOST, description="Such as `pull_request.title`, or `items.0.id`.")] = (
        ""
    )
    value: Annotated[Any, Field(description="The same each time.")] = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if len(self.model_fields_set) != 1:
            raise PydanticCustomError("several", "Give one of path and value")
        return self


class TriggerFields(Body):
    """What the bodies of triggers have in common: what starts, and when."""

    text: Annotated[
        Text,
        Field(description=f"What the agent is to do, or to remind you of: at most {TEXT_MOST:,} characters."),
    ] | None = None  # fmt: skip
    workflow: Annotated[
        Text, Field(min_length=1, max_length=80, description="The name of a workflow to run in place of the agent.")
    ] | None = None  # fmt: skip
    policy: Annotated[
        Text, Field(min_length=1, max_length=100, description="The name of a policy to run in place of the agent.")
    ] | None = None  # fmt: skip
    input: Annotated[dict[str, Any], Field(description="What that workflow or policy is started with.")] | None = None
    at: Annotated[
        datetime,
        BeforeValidator(_as_moment),
        WithJsonSchema({"type": "string", "format": "date-time"}, mode="validation"),
        Field(description="Once, at this time. Without an offset, it is local time in `zone`: `2027-03-01T09:00`."),
    ] | None = None  # fmt: skip
    every_seconds: Annotated[
        int, Field(ge=1, le=SECONDS_MOST, description="Again and again, so often, counted from now.")
    ] | None = None  # fmt: skip
    cron: Annotated[
        Text,
        Field(min_length=1, max_length=EXPRESSION_MOST, description="By a cron expression: `0 9 * * 1-5`, `@daily`."),
    ] | None = None  # fmt: skip
    zone: Annotated[
        Text, Field(min_length=1, max_length=64, description="The time zone, such as `Europe/Berlin`.")
    ] | None = None  # fmt: skip
    mapping: Annotated[
        dict[str, MappedFrom],
        Field(description="What a workflow is given of a webhook, by the names of its fields."),
    ] | None = None  # fmt: skip

    @model_validator(mode="after")
    def _not_several(self) -> Self:
        if sum(each is not None for each in (self.text, self.workflow, self.policy)) > 1:
            raise PydanticCustomError("several", "Give only one of text, workflow and policy")
        if self.timed() > 1:
            raise PydanticCustomError("several", "Give only one of at, every_seconds and cron")
        return self

    def timed(self) -> int:
        """Return how many times the body names at which it is due."""
        return sum(each is not None for each in (self.at, self.every_seconds, self.cron))

    def named_policy(self) -> str | None:
        """Return the name of the policy that is to run; None if the body does not say it."""
        if self.text is not None:
            return AGENT
        return f"workflow:{self.workflow}" if self.workflow is not None else self.policy

    def schedule(self, now: datetime, zone: str) -> Schedule | None:
        """Return when it is due, in this zone; None if the body does not say it. Raises BadSchedule."""
        if self.at is not None:
            return Schedule(zone, at=self.at if self.at.tzinfo else self.at.replace(tzinfo=zone_named(zone)))
        if self.every_seconds is not None:
            return Schedule(zone, seconds=self.every_seconds, since=now)
        return Schedule(zone, expression=self.cron) if self.cron is not None else None


class NewTrigger(TriggerFields):
    """A new trigger: exactly one of `text`, `workflow` and `policy`, and one of `at`, `every_seconds`, `cron` and
    `webhook`.

    `zone` is yours unless you say otherwise.
    """

    name: Name = ""
    tier: Tier = "normal"
    overlap: Overlaps = "skip"
    webhook: Annotated[
        Literal["standard", "github", "token"],
        Field(description="It fires by webhooks, whose senders prove themselves so. Each waits its turn."),
    ] | None = None  # fmt: skip
    conversation: Annotated[
        int,
        Field(ge=1, lt=2**63, description="A chat of yours in which it fires. Only with `text` and `at`."),
    ] | None = None  # fmt: skip

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.named_policy() is None:
            raise PydanticCustomError("what", "Give one of text, workflow and policy")
        if bool(self.timed()) == (self.webhook is not None):
            raise PydanticCustomError("when", "Give one of at, every_seconds, cron and webhook")
        if self.webhook and self.input is not None:
            raise PydanticCustomError("input", "What a webhook gives a workflow is said by a mapping: send no input")
        if self.mapping is not None and not self.webhook:
            raise PydanticCustomError("mapping", "A mapping is for what webhooks bring: send none with a time")
        if self.text is not None and self.input is not None:
            raise PydanticCustomError("input", "An input is that of a workflow or a policy: send none with a text")
        if self.conversation is not None and (self.text is None or self.at is None):
            raise PydanticCustomError("chat", "Only a text that fires once can fire into a chat of yours")
        return self


class ChangedTrigger(TriggerFields):
    """Changes to a trigger. Fields that are left out stay unchanged. What it starts and when are replaced whole.

    One that fires by webhooks keeps doing so, and has no time.

    So with `text`, it starts the agent, and with `at`, it fires once, whatever it did before.
    """

    name: Name | None = None
    tier: Tier | None = None
    overlap: Overlaps | None = None


class DueTime(Shape):
    """A time at which a trigger is due."""

    at: Time
    words: Annotated[str, Field(description="The same in the zone of the trigger, for people.")]
    note: Annotated[OptionalText, Field(description="What a change of the clocks does to it, if one does.")]


class Secret(Shape):
    """A secret of the senders of webhooks. `text` is there only in the response to the request that made it."""

    id: Id
    created_at: Time
    text: OptionalText

    @classmethod
    def of(cls, row: HookSecret, text: str = "") -> Self:
        """Return this secret, with its text if it was made just now."""
        return cls.read(row, text=text)


class Trigger(Shape):
    """What starts turns by itself."""

    id: Id
    name: str
    state: Annotated[str, WithJsonSchema({"type": "string", "enum": STATES})]
    policy: Annotated[str, Field(description="What it starts: `agent`, `workflow:<name>`, or a policy of an app.")]
    text: Annotated[OptionalText, Field(description="What the agent is to do. Null for other policies.")]
    input: Annotated[dict[str, Any] | None, Field(description="What the policy is started with. Null for the agent.")]
    when: Annotated[str, Field(description="When it is due, in words.")]
    webhook: Annotated[
        OptionalText, Field(description="How senders of webhooks prove themselves. Null if it fires at times.")
    ]
    url: Annotated[OptionalText, Field(description="Where webhooks are sent to, at this site.")]
    secrets: Annotated[list[Secret], Field(description="Those that senders of webhooks may have.")]
    mapping: Annotated[dict[str, Any] | None, Field(description="What a workflow is given of a webhook.")]
    at: OptionalTime
    every_seconds: int | None
    cron: OptionalText
    zone: str
    tier: str
    overlap: Annotated[str, WithJsonSchema({"type": "string", "enum": Overlap.values})]
    conversation: Annotated[int | None, Field(description="Where its turns stand. Null before the first one.")]
    next_at: Annotated[
        OptionalTime,
        Field(description="When it fires next: if it repeats, up to a minute after it is due. Null unless `on`."),
    ]
    next: Annotated[list[DueTime], Field(description="When it is due next: at most five times. Empty unless `on`.")]
    failures: Annotated[int, Field(description="In a row.")]
    off_reason: Annotated[OptionalText, Field(description="Why the site switched it off.")]
    created_at: Time
    paused_at: OptionalTime

    @classmethod
    def of(cls, row: TriggerRow, now: datetime, secret: str = "") -> Self:
        """Return this trigger as it stands now. `secret`: that of its first, if it was made just now."""
        schedule, of_agent, is_on = row.schedule, row.policy == AGENT, row.state == "on"
        return cls.read(
            row,
            input=None if of_agent or row.hook else row.input,
            webhook=row.proof,
            url=f"{settings.AGENTSITE_URL}{row.hook_path}" if row.hook else "",
            secrets=[Secret.of(each, secret) for each in row.hook_secrets.all()],
            mapping=None if of_agent or not row.hook else row.mapping,
            every_seconds=row.seconds,
            cron=row.expression,
            conversation=row.conversation_id,
            next_at=row.next_at if is_on else None,
            next=[DueTime.read(each) for each in words.preview(schedule, now)] if is_on and not row.hook else [],
        )


class TriggerPage(ListPage[Trigger]):
    """A page of triggers."""


class Firing(Shape):
    """One time that a trigger was due, got a webhook, or was run by hand, and what became of it.

    `started`: a turn started. `folded`: it counts to the turn before, which waits for a decision. `skipped`: it was
    left out, because that turn had not ended, or webhooks were refused. `queued`: it waits for that. `missed`: the site
    was not there, or was stopped. `failed`: no turn could start.
    """

    id: Id
    state: Annotated[str, WithJsonSchema({"type": "string", "enum": FiringState.values})]
    slot: Annotated[OptionalTime, Field(description="When it was due. Null otherwise.")]
    webhook_id: Annotated[OptionalText, Field(description="The sender's own id of a webhook, if it gave one.")]
    times: Annotated[
        int, Field(description="How many such times in a row this stands for, of those that were missed or refused.")
    ]
    fired_at: Time
    reason: Annotated[OptionalText, Field(description="Why no turn started, in words.")]
    prompt: Annotated[int | None, Field(description="The turn that started, or to which it was counted.")]
    can_start_again: Annotated[
        bool, Field(description="Whether it failed to start, and what came with the webhook is still there.")
    ]

    @classmethod
    def of(cls, row: FiringRow) -> Self:
        """Return this firing."""
        return cls.read(row, prompt=row.prompt_id)


class FiringPage(ListPage[Firing]):
    """A page of firings."""
