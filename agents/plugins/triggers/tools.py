"""The tools by which an agent makes, lists and deletes triggers of the person it works for."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Self

from pydantic import BaseModel, Field, model_validator

from agents.categories import TRIGGERS
from agents.engine.errors import ToolError
from agents.engine.interfaces.services import TriggerInWords
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.plugins.triggers.schedule import SECONDS_MOST, TEXT_MOST, BadSchedule, Schedule, zone_named
from agents.plugins.triggers.words import with_next

MINUTES_MOST = SECONDS_MOST // 60


class NewTrigger(BaseModel):
    """The input of `trigger.create`: a text, and when. Exactly one of `in_minutes`, `at`, `every_minutes`, `cron`."""

    text: str = Field(
        min_length=1,
        max_length=TEXT_MOST,
        description="What you are to do then, or to remind the person of. You will read this and nothing else of now.",
    )
    in_minutes: float | None = Field(
        default=None, gt=0, le=MINUTES_MOST, description="Once, so many minutes after this was approved."
    )
    at: str | None = Field(
        default=None, max_length=40, description="Once, at this local date and time, such as 2027-03-01T09:00."
    )
    every_minutes: int | None = Field(default=None, ge=1, le=MINUTES_MOST, description="Again and again, so often.")
    cron: str | None = Field(
        default=None,
        max_length=100,
        description="By a cron expression of five fields: 0 9 * * 1-5 is every weekday at 09:00.",
    )
    zone: str = Field(
        default="",
        max_length=64,
        description='The time zone of `at` and `cron`, such as Europe/Berlin; "": the person\'s.',
    )

    @model_validator(mode="after")
    def _one_time(self) -> Self:
        given = [self.in_minutes, self.at, self.every_minutes, self.cron]
        if sum(each is not None for each in given) != 1:
            raise ValueError("give exactly one of in_minutes, at, every_minutes and cron")
        if self.zone:
            zone_named(self.zone)
        if self.at is not None:
            datetime.fromisoformat(self.at)
        return self

    def schedule(self, now: datetime, zone: str) -> Schedule:
        """Return the schedule that is meant, as seen now by a person in this zone."""
        named = self.zone or zone
        if self.in_minutes is not None:
            return Schedule(named, at=now + timedelta(minutes=self.in_minutes))
        if self.at is not None:
            at = datetime.fromisoformat(self.at)
            return Schedule(named, at=at if at.tzinfo else at.replace(tzinfo=zone_named(named)))
        if self.every_minutes is not None:
            return Schedule(named, seconds=self.every_minutes * 60, since=now)
        return Schedule(named, expression=self.cron or "")


def _schedule(call: ToolCall[NewTrigger]) -> Schedule:
    """Return the schedule of a call. Raises ToolError for one that cannot be."""
    schedule = call.input.schedule(now := call.services.now(), call.services.zone)
    try:
        schedule.check(now, call.services.triggers.least_seconds)
    except BadSchedule as error:
        raise ToolError(str(error), code="invalid_input") from error
    return schedule


def _why(call: ToolCall[NewTrigger]) -> str:
    """Return what the person is asked: when it fires, in words and dates."""
    if (minutes := call.input.in_minutes) is not None:
        return f"It fires once, {_minutes(minutes)} after you approve."
    return f"It fires {with_next(_schedule(call), call.services.now())}."


def _minutes(minutes: float) -> str:
    return "one minute" if minutes == 1 else f"{minutes:g} minutes"


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else f"{line[:119].rstrip()}\N{HORIZONTAL ELLIPSIS}"


def _zone(call: ToolCall[NewTrigger]) -> list[str]:
    """Return in which time zone it fires, where that matters and the input does not say it."""
    matters = call.input.at or call.input.cron
    return [f"In the time zone {call.services.zone}."] if matters and not call.input.zone else []


def _possible(call: ToolCall[NewTrigger]) -> None:
    """Refuse what cannot be before anybody is asked, and again when it starts: the time may be over by then."""
    _schedule(call)


@tool(
    "trigger.create",
    risk=Risk.WRITE,
    approval=_why,
    idempotent=True,
    category=TRIGGERS,
    title="Set a trigger",
    says=lambda asked: "set a trigger",
    undoable="You can delete the trigger under Triggers, and so can the agent if you ask it to.",
    facts=_zone,
    change=_possible,
)
async def create(call: ToolCall[NewTrigger]) -> str:
    """Let a turn of yours start by itself later, once or again and again: to remind the person, or to do something.

    One that fires once does so in this conversation; others have a conversation of their own. Nobody may be there then:
    calls that need an approval will wait for it.
    """
    made = await call.services.triggers.create(_schedule(call), call.input.text, call.key)
    where = "in this conversation" if call.input.in_minutes or call.input.at else "in a conversation of its own"
    return f"Trigger {made.id} is set. It fires {made.when}, {where}."


class NoFields(BaseModel):
    """The input of `trigger.list`."""


@tool(
    "trigger.list", risk=Risk.READ, category=TRIGGERS, title="List triggers", says=lambda asked: "listed the triggers"
)
async def list_triggers(call: ToolCall[NoFields]) -> str:
    """List the person's triggers: their numbers, when they fire, and what they say."""
    found = await call.services.triggers.list()
    return "\n".join(map(_described, found)) or "There are no triggers."


def _described(trigger: TriggerInWords) -> str:
    state = "" if trigger.state == "on" else f" ({trigger.state})"
    return f"{trigger.id}: {trigger.when}{state}: {_line(trigger.text)}"


class Which(BaseModel):
    """The input of `trigger.delete`."""

    id: int = Field(ge=1, description="The number of the trigger, as `trigger_list` gives it.")


async def _what_goes(call: ToolCall[Which]) -> bool | str:
    """Return what the person is asked: a number says nothing of what they would lose."""
    found = next((each for each in await call.services.triggers.list() if each.id == call.input.id), None)
    return f"Delete trigger {found.id}. It fires {found.when}: {_line(found.text)}" if found else True


@tool(
    "trigger.delete",
    risk=Risk.WRITE,
    approval=_what_goes,
    category=TRIGGERS,
    title="Delete a trigger",
    says=lambda asked: f"deleted trigger {asked.id}",
    justify=lambda asked: f"Delete trigger {asked.id}, so that it does not fire again.",
    undoable="A deleted trigger is gone with its history. The turns that it started stay.",
)
async def delete(call: ToolCall[Which]) -> str:
    """Delete one of the person's triggers."""
    gone = await call.services.triggers.delete(call.input.id)
    return f"Trigger {gone.id} is deleted. It was: {gone.when}: {_line(gone.text)}"
