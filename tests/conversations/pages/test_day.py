"""The day and time above a turn that does not follow closely on another, also if it is pushed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from conversations.models import Prompt
from conversations.pages.chat.live import catch_up
from tests.conversations.support import Story, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(client: Client) -> User:
    user = person("anna")
    client.force_login(user)
    return user


def days(html: str) -> list[str]:
    return re.findall(r'<p class="day" id="b-\d+-day"[^>]*>([^<]+)</p>', html)


def test_a_turn_after_a_lull_stands_under_its_time(
    client: Client, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    noon = timezone.now().replace(hour=12, minute=30, second=0, microsecond=0)
    monkeypatch.setattr(timezone, "now", lambda: noon + timedelta(hours=2))
    told = Story(owner)
    told.ends()
    for began in (
        datetime(2025, 3, 4, 9, 5, tzinfo=UTC),
        noon - timedelta(days=1),
        noon,
        noon + timedelta(minutes=59),
        noon + timedelta(minutes=120),
    ):
        if began.year != 2025:
            told = Story(owner, conversation=told.conversation)
            told.ends()
        Prompt.objects.filter(pk=told.prompt.pk).update(created_at=began)
    expected = ["4 Mar 2025, 09:05", "Yesterday, 12:30", "Today, 12:30", "Today, 14:30"]
    assert days(client.get(f"/c/{told.conversation.pk}/").text) == expected
    assert days(catch_up(told.conversation.pk, 0)[0]) == expected


def test_midnight_begins_a_day(client: Client, owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    monkeypatch.setattr(timezone, "now", lambda: midnight + timedelta(hours=1))
    first = Story(owner)
    first.ends()
    second = Story(owner, conversation=first.conversation)
    second.ends()
    Prompt.objects.filter(pk=first.prompt.pk).update(created_at=midnight - timedelta(minutes=1))
    Prompt.objects.filter(pk=second.prompt.pk).update(created_at=midnight + timedelta(minutes=1))
    assert days(client.get(f"/c/{first.conversation.pk}/").text) == ["Yesterday, 23:59", "Today, 00:01"]
