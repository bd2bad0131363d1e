"""Schedules: once, every so often, or by a cron expression; when each is due next, in its time zone.

Times of day are those of the zone. In the night in which its clocks go forward, a time that is skipped is due when they
have; in the night in which they go back, a time that comes twice is due the first time. What is due every so many
minutes or hours follows the real time. All of that is cronsim's way, and that of Debian's cron.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

NAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""The names that crontab(5) has for expressions."""
TEXT_MOST = 4_000
"""Maximum length of what a trigger says, in characters."""
FIELDS = 5
YEARS = range(2, 9999)
"""Years whose times exist in every time zone."""
SECONDS_MOST = 5 * 366 * 24 * 60 * 60
"""The longest time between two, in seconds: five years."""
COUNTED = 200
"""Times of a cron expression between which the shortest gap is looked for: more than half a year of daily ones."""
MISSED_MOST = 10_000
"""Missed times that are counted one by one, five weeks of five minutes; of more only this many are."""


class BadSchedule(ValueError):
    """A schedule that cannot be: its text says why, and what to do. `field`: which part of it is wrong."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field


def zone_named(name: str) -> ZoneInfo:
    """Return the time zone of this name. Raises BadSchedule if there is none."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadSchedule("zone", f"There is no time zone {name[:60]!r}. An example of one is Europe/Berlin.") from None


@dataclass(frozen=True)
class Schedule:
    """When something is due: once `at` a time, every so many `seconds` counted from `since`, or by an `expression`.

    Exactly one of the three is set. `at` and `since` have a zone. `zone` is the name of the zone whose clock counts.
    """

    zone: str
    at: datetime | None = None
    seconds: int | None = None
    since: datetime | None = None
    expression: str = ""

    @property
    def repeats(self) -> bool:
        """Whether it is due more than once."""
        return self.at is None

    @property
    def cron(self) -> str:
        """Its expression with five fields, without names."""
        return NAMES.get(self.expression.strip().lower(), " ".join(self.expression.split()))

    def check(self, now: datetime, least_seconds: float) -> None:
        """Raise BadSchedule if it is none, is never due after `now`, or is due twice within less than that."""
        zone_named(self.zone)
        if self.at is not None:
            if self.at.year not in YEARS:
                raise BadSchedule("at", f"Choose a time to come, before the year {YEARS.stop}.")
            if self.at <= now:
                raise BadSchedule("at", f"That was {local(self.at, self.zone)}, which is over. Choose a time to come.")
            return
        if self.seconds is not None:
            if self.seconds > SECONDS_MOST:
                raise BadSchedule("seconds", f"At most every {span(SECONDS_MOST)}.")
            shortest: float = self.seconds
        else:
            shortest = self._shortest_gap(now)
        if shortest < least_seconds:
            field = "expression" if self.seconds is None else "seconds"
            raise BadSchedule(field, f"That is more often than every {span(least_seconds)}, which is the limit here.")

    def _shortest_gap(self, now: datetime) -> float:
        if len(self.cron.split()) != FIELDS:
            raise BadSchedule(
                "expression",
                "A cron expression has five fields: minute, hour, day of the month, month and day of the week, such as"
                " 0 9 * * 1-5 for every weekday at 09:00.",
            )
        try:
            times = list(islice(self._from(now), COUNTED))
        except CronSimError as error:
            raise BadSchedule("expression", f"This cron expression is not valid: {str(error).lower()}.") from None
        if not times:
            raise BadSchedule("expression", "This cron expression has no time to come.")
        gaps = ((after - before).total_seconds() for before, after in pairwise(times))
        return min(gaps, default=math.inf)

    def after(self, moment: datetime) -> datetime | None:
        """Return when it is due first after this moment, in UTC; None if it is not any more."""
        return next(self._from(moment), None)

    def next_times(self, moment: datetime, most: int) -> list[datetime]:
        """Return when it is due after this moment, in UTC, the first `most` times."""
        return list(islice(self._from(moment), most))

    def _from(self, moment: datetime) -> Iterator[datetime]:
        if self.at is not None:
            if self.at > moment:
                yield self.at.astimezone(UTC)
        elif self.seconds is not None and self.since is not None:
            passed = (moment - self.since).total_seconds() // self.seconds
            at = self.since.astimezone(UTC) + timedelta(seconds=self.seconds * max(passed + 1, 1))
            while True:
                yield at
                at += timedelta(seconds=self.seconds)
        else:
            for time in CronSim(self.cron, moment.astimezone(zone_named(self.zone))):
                yield time.astimezone(UTC)

    def due(self, since: datetime, now: datetime) -> tuple[datetime, int]:
        """Return the last time it was due by `now`, where it was due at `since` first, and how often it was due."""
        last, times = since, 1
        for time in islice(self._from(since), MISSED_MOST):
            if time > now:
                return last, times
            last, times = time, times + 1
        if self.seconds is None:  # read backwards: cronsim gives times before the one it is given
            later = CronSim(self.cron, (now + timedelta(minutes=1)).astimezone(zone_named(self.zone)), reverse=True)
            last = max((time for time in islice(later, 2) if time <= now), default=last)
            return last.astimezone(UTC), times
        skipped = (now - last).total_seconds() // self.seconds
        return last + timedelta(seconds=self.seconds * skipped), times


def local(moment: datetime, zone: str) -> str:
    """Return a moment as people read it in this zone: `Mon 24 Nov 2026, 09:00`."""
    time = moment.astimezone(zone_named(zone))
    return f"{time:%a} {time.day} {time:%b %Y, %H:%M}"


def span(seconds: float) -> str:
    """Return so many seconds in words: `1 minute`, `2 hours`, `90 seconds`."""
    for name, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size and seconds % size == 0:
            number = int(seconds // size)
            return f"1 {name}" if number == 1 else f"{number} {name}s"
    return f"{seconds:g} seconds"
