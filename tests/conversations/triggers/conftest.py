"""What the tests of triggers share: a clock that stands still until it is moved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from agents.plugins.triggers.schedule import Schedule
from conversations.models import Trigger
from conversations.triggers import slots
from conversations.triggers.firing import fire_due
from conversations.triggers.managing import NewTrigger, create


class StillClock:
    """The clock of the database, as far as triggers look at it."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 2, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def at(self, *moment: int) -> None:
        self.time = datetime(*moment, tzinfo=UTC)  # type: ignore[misc,arg-type]

    def passes(self, **time: float) -> int:
        """Let time pass, then look for what is due; return how many turns that started."""
        self.time += timedelta(**time)
        return fire_due()

    def every(self, owner: object, minutes: int = 5, **more: object) -> Trigger:
        """Make a trigger that fires so often."""
        schedule = Schedule("Europe/Berlin", seconds=minutes * 60, since=self.time)
        return create(owner, NewTrigger(schedule, **{"text": "look at the logs", **more}))  # type: ignore[arg-type]

    def cron(self, owner: object, expression: str, zone: str = "Europe/Berlin", **more: object) -> Trigger:
        """Make a trigger with this cron expression."""
        schedule = Schedule(zone, expression=expression)
        return create(owner, NewTrigger(schedule, **{"text": "look at the logs", **more}))  # type: ignore[arg-type]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, settings: pytest.FixtureRequest) -> StillClock:
    """A clock that stands still; triggers fire when they are due, not spread."""
    settings.AGENTSITE_TRIGGER_SPREAD_SECONDS = 0  # type: ignore[attr-defined]
    still = StillClock()
    monkeypatch.setattr(slots, "now", still)
    return still
