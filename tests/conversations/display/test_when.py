"""Times to come: how far off, to the nearest, and by the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from conversations.display.when import ahead, at


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (timedelta(hours=24), "in 24 h"),
        (timedelta(hours=23, minutes=29), "in 23 h"),
        (timedelta(hours=1, minutes=40), "in 2 h"),
        (timedelta(minutes=59, seconds=50), "in 1 h"),
        (timedelta(minutes=48), "in 48 min"),
        (timedelta(seconds=20), "in 1 min"),
        (timedelta(seconds=0), "now"),
    ],
)
def test_how_far_off(left: timedelta, words: str) -> None:
    assert ahead(timezone.now() + left) == words


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (datetime(2026, 11, 12, 14, 12, tzinfo=UTC), "at 14:12"),
        (datetime(2026, 11, 13, 0, 5, tzinfo=UTC), "tomorrow at 00:05"),
        (datetime(2026, 11, 14, 16, 22, tzinfo=UTC), "on 14 Nov at 16:22"),
        (datetime(2027, 1, 2, 16, 22, tzinfo=UTC), "on 2 Jan 2027 at 16:22"),
    ],
)
def test_by_the_clock(monkeypatch: pytest.MonkeyPatch, time: datetime, words: str) -> None:
    """With its day, unless that is today."""
    monkeypatch.setattr(timezone, "now", lambda: datetime(2026, 11, 12, 13, 30, tzinfo=UTC))
    assert at(time) == words
