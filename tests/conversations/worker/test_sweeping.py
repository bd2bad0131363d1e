"""The nightly task deletes the history of triggers and notices of long ago, but nothing that still waits."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.plugins.triggers.schedule import Schedule
from conversations.models import Firing, FiringState, Notice, NoticeKind, Trigger
from conversations.triggers.managing import NewTrigger, create
from conversations.worker import sweeping
from conversations.worker.sweeping import sweep_old
from tests.conversations.recorded import Site
from tests.conversations.support import asking
from tests.engine.support import says

pytestmark = pytest.mark.django_db


@pytest.fixture
def trigger(ann: User) -> Trigger:
    return create(ann, NewTrigger(Schedule("UTC", expression="0 9 * * *"), "look at the logs"))


def fired(trigger: Trigger, days: int, state: FiringState = FiringState.STARTED, **more: Any) -> Firing:
    made = Firing.objects.create(trigger=trigger, state=state, **more)
    Firing.objects.filter(pk=made.pk).update(fired_at=timezone.now() - timedelta(days=days))
    return made


def told(person: User, days: int, **more: Any) -> Notice:
    made = Notice.objects.create(user=person, kind=NoticeKind.ENDED, **more)
    Notice.objects.filter(pk=made.pk).update(at=timezone.now() - timedelta(days=days))
    return made


def test_what_is_old_and_over_goes(trigger: Trigger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "AT_ONCE", 2)
    for _ in range(5):
        fired(trigger, 91)
    kept = [fired(trigger, 89), fired(trigger, 91, open=True), fired(trigger, 91, FiringState.QUEUED)]
    beats: list[None] = []
    assert sweep_old(lambda: beats.append(None)) == 5
    assert set(Firing.objects.all()) == set(kept)
    assert len(beats) == 3
    assert sweep_old() == 0


def test_who_was_told_of_a_turn_that_waits_is_not_told_again(ann: User, site: Site) -> None:
    """However long it waits, its notice stays."""
    story, _output = asking(ann)
    ended = site.ended(ann, says("Hello."))
    gone = [told(ann, 91, prompt=ended, seq=1), told(ann, 91, title="Switched off")]
    kept = [told(ann, 91, prompt=story.prompt, seq=1), told(ann, 89, title="Switched off")]
    assert sweep_old() == len(gone)
    assert set(Notice.objects.all()) == set(kept)
