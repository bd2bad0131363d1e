"""Schedules in words, for cards, pages and the model; and what the changes of clocks do to them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cronsim import CronSim

from agents.plugins.triggers.schedule import Schedule, local, span, zone_named

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def in_words(schedule: Schedule) -> str:
    """Return when it is due: `every weekday at 09:00 Europe/Berlin`, `every 2 hours`, `once, on Mon 24 Nov 2026 ...`.

    The schedule must be one that passed its check.
    """
    if schedule.at is not None:
        return f"once, on {local(schedule.at, schedule.zone)} {schedule.zone}"
    if schedule.seconds is not None:
        return f"every {span(schedule.seconds).removeprefix('1 ')}"
    return f"{_cron(schedule.cron)} {schedule.zone}"


def with_next(schedule: Schedule, now: datetime) -> str:
    """Return when it is due in words, and of one that repeats the next date."""
    words, following = in_words(schedule), schedule.after(now)
    if not schedule.repeats or following is None:
        return words
    return f"{words}, next {local(following, schedule.zone)}"


def _cron(expression: str) -> str:
    """Return a cron expression in words: the usual ones in the words that people use, others in cronsim's."""
    minute, hour, day, month, weekday = expression.split()
    if re.fullmatch(r"\d+", minute) and month == "*":
        if hour == day == weekday == "*":
            return f"every hour at minute {int(minute)}"
        if re.fullmatch(r"\d+", hour):
            at = f"at {int(hour):02}:{int(minute):02}"
            if day == weekday == "*":
                return f"every day {at}"
            if day == "*" and weekday in ("1-5", "mon-fri", "MON-FRI"):
                return f"every weekday {at}"
            if day == "*" and re.fullmatch(r"[0-7]", weekday):
                return f"every {DAYS[int(weekday) % 7]} {at}"
            if weekday == "*" and re.fullmatch(r"\d+", day):
                return f"on day {int(day)} of every month {at}"
    explained: str = CronSim(expression, datetime.now(UTC)).explain()
    return explained[:1].lower() + explained[1:]


@dataclass(frozen=True)
class DueTime:
    """A time at which a schedule is due. `words`: in its zone. `note`: what a change of the clocks does to it."""

    at: datetime
    words: str
    note: str


def preview(schedule: Schedule, now: datetime, most: int = 5) -> list[DueTime]:
    """Return the next times at which it is due, in words."""
    found, before = [], now
    for at in schedule.next_times(now, most):
        found.append(DueTime(at, local(at, schedule.zone), _clocks(schedule, before, at)))
        before = at
    return found


def _clocks(schedule: Schedule, before: datetime, at: datetime) -> str:
    """Return what a change of the clocks between the two does to the later one."""
    zone = zone_named(schedule.zone)
    time = at.astimezone(zone)
    if not schedule.expression:  # the real time counts; of a single time, only what the clock shows then
        return ""
    if time.replace(fold=0).utcoffset() != time.replace(fold=1).utcoffset():
        which = "second" if time.fold else "first"
        return f"The clocks go back: {time:%H:%M} comes twice, and this is the {which}."
    if (wanted := _time_of_day(schedule.cron)) and (time.hour, time.minute) != wanted:
        return f"The clocks go forward: there is no {wanted[0]:02}:{wanted[1]:02} that night."
    earlier, later = before.astimezone(zone).utcoffset(), time.utcoffset()
    if earlier == later or earlier is None or later is None:
        return ""
    change = "forward" if later > earlier else "back"
    return f"After the clocks have gone {change} by {span(abs((later - earlier) / timedelta(seconds=1)))}."


def _time_of_day(expression: str) -> tuple[int, int] | None:
    """Return the one hour and minute of an expression; None if it has several."""
    minute, hour = expression.split()[:2]
    return (int(hour), int(minute)) if minute.isdigit() and hour.isdigit() else None
