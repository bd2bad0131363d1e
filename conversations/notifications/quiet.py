"""Quiet hours: when a person is not to be disturbed, by the clock of their own time zone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo

from django.contrib.auth.models import User
from django.db.models import Q

from conversations.accounts.zones import known_zone
from conversations.models import Account

DAY = timedelta(days=1)


@dataclass(frozen=True)
class QuietHours:
    """Quiet hours of each day, from `start` to `end`, by the clock of `zone`. An `end` before `start` is the next day.

    Where the clock is turned, a time may come twice, or not at all. The hours then begin at the earlier reading and end
    at the later one, so that they stay in one piece: https://peps.python.org/pep-0495/
    """

    start: time
    end: time
    zone: tzinfo

    def period(self, now: datetime) -> tuple[datetime, datetime]:
        """Return the beginning and the end of the period that contains `now`, or else of the next one."""
        return next((begin, end) for begin, end in self._periods(now) if now < end)

    def hold(self, now: datetime) -> bool:
        """Whether it is quiet at this moment."""
        return self.period(now)[0] <= now

    def _periods(self, now: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Yield the periods that begin yesterday, today and tomorrow."""
        today = now.astimezone(self.zone).date()
        for day in (today - DAY, today, today + DAY):
            last = day + DAY if self.end <= self.start else day
            yield min(self._readings(day, self.start)), max(self._readings(last, self.end))

    def _readings(self, day: date, clock: time) -> list[datetime]:
        wall = datetime.combine(day, clock, self.zone)
        return [wall.replace(fold=fold).astimezone(UTC) for fold in (0, 1)]


def quiet_hours_of(user: User) -> QuietHours | None:
    """Return the quiet hours of this person, if they chose any."""
    found = Account.objects.filter(user=user).values_list("quiet_from", "quiet_to", "zone").first()
    return _hours(*found) if found else None


def in_quiet_hours(now: datetime) -> Q:
    """Return a condition on users: it is quiet for them now.

    What people chose is read, not who chose it: few different hours are in use, whatever the number of people.
    """
    condition = Q(pk__in=[])
    chosen = Account.objects.filter(quiet_from__isnull=False).order_by()
    for start, end, zone in chosen.values_list("quiet_from", "quiet_to", "zone").distinct():
        hours = _hours(start, end, zone)
        if hours and hours.hold(now):
            condition |= Q(account__quiet_from=start, account__quiet_to=end, account__zone=zone)
    return condition


def _hours(start: time | None, end: time | None, zone: str) -> QuietHours | None:
    return QuietHours(start, end, known_zone(zone)) if start is not None and end is not None else None
