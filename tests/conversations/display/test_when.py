"""Times to come, to the nearest: what was just given a day has a day."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from conversations.display.when import ahead


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
