"""Quiet hours: by the clock of a person's zone, over midnight, and in the nights in which clocks are turned."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User

from conversations.models import Account
from conversations.notifications.quiet import QuietHours, in_quiet_hours, quiet_hours_of
from tests.conversations.support import person

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = QuietHours(time(22), time(7), BERLIN)


def at(text: str) -> datetime:
    """A moment, in UTC."""
    return datetime.fromisoformat(f"{text}+00:00")


def quiet_minutes(hours: QuietHours, since: datetime, until: datetime) -> list[datetime]:
    """The minutes in which it is quiet."""
    minutes = int((until - since) / timedelta(minutes=1))
    return [now for n in range(minutes) if hours.hold(now := since + timedelta(minutes=n))]


@pytest.mark.parametrize(
    ("now", "quiet"),
    [
        ("2026-06-10 19:59", False),  # 21:59 in Berlin
        ("2026-06-10 20:00", True),
        ("2026-06-10 23:30", True),  # the next day there
        ("2026-06-11 04:59", True),
        ("2026-06-11 05:00", False),
        ("2026-01-10 20:59", False),  # in winter an hour later
        ("2026-01-10 21:00", True),
    ],
)
def test_quiet_hours_may_go_over_midnight(now: str, quiet: bool) -> None:
    assert NIGHT.hold(at(now)) is quiet


def test_quiet_hours_within_a_day() -> None:
    noon = QuietHours(time(12), time(13, 30), BERLIN)
    assert [noon.hold(at(f"2026-06-10 {clock}")) for clock in ("09:59", "10:00", "11:29", "11:30")] == [
        False,
        True,
        True,
        False,
    ]
    assert noon.period(at("2026-06-10 12:00")) == (at("2026-06-11 10:00"), at("2026-06-11 11:30"))  # the next one


def test_the_night_of_an_hour_less_and_of_an_hour_more() -> None:
    """The clock says the same at both ends, so one night is shorter and the other longer."""
    spring = quiet_minutes(NIGHT, at("2026-03-28 12:00"), at("2026-03-29 12:00"))
    assert (spring[0], spring[-1] + timedelta(minutes=1)) == (at("2026-03-28 21:00"), at("2026-03-29 05:00"))
    autumn = quiet_minutes(NIGHT, at("2026-10-24 12:00"), at("2026-10-25 12:00"))
    assert (autumn[0], autumn[-1] + timedelta(minutes=1)) == (at("2026-10-24 20:00"), at("2026-10-25 06:00"))
    assert (len(spring), len(autumn)) == (8 * 60, 10 * 60)


def test_a_time_that_comes_twice_ends_the_quiet_once() -> None:
    """In autumn 02:30 comes twice in Berlin, at 00:30 and 01:30 UTC: it stays quiet from the first to the second."""
    until = QuietHours(time(22), time(2, 30), BERLIN)
    minutes = quiet_minutes(until, at("2026-10-24 12:00"), at("2026-10-25 12:00"))
    assert minutes[-1] == at("2026-10-25 01:29")
    assert len(minutes) == (minutes[-1] - minutes[0]) / timedelta(minutes=1) + 1  # in one piece
    since = QuietHours(time(2, 30), time(7), BERLIN)
    assert quiet_minutes(since, at("2026-10-24 12:00"), at("2026-10-25 12:00"))[0] == at("2026-10-25 00:30")


def test_a_time_that_does_not_come_ends_the_quiet_all_the_same() -> None:
    """In spring 02:30 is left out in Berlin; the clock goes from 02:00 to 03:00 at 01:00 UTC."""
    until = QuietHours(time(22), time(2, 30), BERLIN)
    assert quiet_minutes(until, at("2026-03-28 12:00"), at("2026-03-29 12:00"))[-1] == at("2026-03-29 01:29")
    since = QuietHours(time(2, 30), time(7), BERLIN)
    assert quiet_minutes(since, at("2026-03-28 12:00"), at("2026-03-29 12:00"))[0] == at("2026-03-29 00:30")


@pytest.mark.django_db
def test_people_are_left_out_by_their_own_clocks() -> None:
    """The zone of each, or the site's; also one that this machine does not know."""
    chosen = {"tokyo": "Asia/Tokyo", "berlin": "Europe/Berlin", "site": "", "gone": "Europe/Atlantis"}
    for name, zone in chosen.items():
        Account.objects.create(user=person(name), zone=zone, quiet_from=time(22), quiet_to=time(7))
    person("none")
    Account.objects.create(user=person("never"), zone="Asia/Tokyo")

    def quiet(now: str) -> list[str]:
        return sorted(User.objects.filter(in_quiet_hours(at(now))).values_list("username", flat=True))

    assert quiet("2026-06-10 14:00") == ["tokyo"]
    assert quiet("2026-06-10 20:30") == ["berlin", "tokyo"]
    assert quiet("2026-06-10 22:30") == ["berlin", "gone", "site"]
    assert quiet("2026-06-10 10:00") == []
    assert quiet_hours_of(User.objects.get(username="none")) is None
    assert quiet_hours_of(User.objects.get(username="never")) is None
    assert quiet_hours_of(User.objects.get(username="site")) == QuietHours(time(22), time(7), ZoneInfo("UTC"))
