"""Request bodies and response types of triggers: components of the OpenAPI document."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

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
from conversations.models import FiringState, Overlap
from conversations.models import Trigger as TriggerRow
from conversations.models.trigger import STATES
from conversations.triggers.managing import EXPRESSION_MOST, NAME_MOST


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

    @model_validator(mode="after")
    def _not_several(self) -> Self:
        if sum(each is not None for each in (self.text, self.workflow, self.policy)) > 1:
            raise PydanticCustomError("several", "Give only one of text, workflow and policy")
        if sum(each is not None for each in (self.at, self.every_seconds, self.cron)) > 1:
            raise PydanticCustomError("several", "Give only one of at, every_seconds and cron")
        return self

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
    """A new trigger: exactly one of `text`, `workflow` and `policy`, and one of `at`, `every_seconds` and `cron`.

    `zone` is yours unless you say otherwise.
    """

    name: Name = ""
    tier: Tier = "normal"
    overlap: Overlaps = "skip"
    conversation: Annotated[
        int,
        Field(ge=1, lt=2**63, description="A chat of yours in which it fires. Only with `text` and `at`."),
    ] | None = None  # fmt: skip

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.named_policy() is None:
            raise PydanticCustomError("what", "Give one of text, workflow and policy")
        if self.at is None and self.every_seconds is None and self.cron is None:
            raise PydanticCustomError("when", "Give one of at, every_seconds and cron")
        if self.text is not None and self.input is not None:
            raise PydanticCustomError("input", "An input is that of a workflow or a policy: send none with a text")
        if self.conversation is not None and (self.text is None or self.at is None):
            raise PydanticCustomError("chat", "Only a text that fires once can fire into a chat of yours")
        return self


class ChangedTrigger(TriggerFields):
    """Changes to a trigger. Fields that are left out stay unchanged. What it starts and when are replaced whole.

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


class Trigger(Shape):
    """What starts turns by itself."""

    id: Id
    name: str
    state: Annotated[str, WithJsonSchema({"type": "string", "enum": STATES})]
    policy: Annotated[str, Field(description="What it starts: `agent`, `workflow:<name>`, or a policy of an app.")]
    text: Annotated[OptionalText, Field(description="What the agent is to do. Null for other policies.")]
    input: Annotated[dict[str, Any] | None, Field(description="What the policy is started with. Null for the agent.")]
    when: Annotated[str, Field(description="When it is due, in words.")]
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
    def of(cls, row: TriggerRow, now: datetime) -> Self:
        """Return this trigger as it stands now."""
        schedule, of_agent, is_on = row.schedule, row.policy == AGENT, row.state == "on"
        return cls.read(
            row,
            input=None if of_agent else row.input,
            when=words.in_words(schedule),
            every_seconds=row.seconds,
            cron=row.expression,
            conversation=row.conversation_id,
            next_at=row.next_at if is_on else None,
            next=[DueTime.read(each) for each in words.preview(schedule, now)] if is_on else [],
        )


class TriggerPage(ListPage[Trigger]):
    """A page of triggers."""


class Firing(Shape):
    """One time that a trigger was due, or was run by hand, and what became of it.

    `started`: a turn started. `folded`: it counts to the turn before, which waits for a decision. `skipped`: it was
    left out, because that turn had not ended. `queued`: it waits for that. `missed`: the site was not there, or was
    stopped. `failed`: no turn could start.
    """

    id: Id
    state: Annotated[str, WithJsonSchema({"type": "string", "enum": FiringState.values})]
    slot: Annotated[OptionalTime, Field(description="When it was due. Null if it was run by hand.")]
    times: Annotated[int, Field(description="How many such times in a row this stands for, of those that were missed.")]
    fired_at: Time
    reason: Annotated[OptionalText, Field(description="Why no turn started, in words.")]
    prompt: Annotated[int | None, Field(description="The turn that started, or to which it was counted.")]

    @classmethod
    def of(cls, row: FiringRow) -> Self:
        """Return this firing."""
        return cls.read(row, prompt=row.prompt_id)


class FiringPage(ListPage[Firing]):
    """A page of firings."""
