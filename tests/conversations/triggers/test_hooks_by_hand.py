"""What a person starts by hand of a trigger that webhooks fire, whatever state that is in."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache

from conversations.models import Firing, FiringState, Payload, Trigger
from conversations.triggers import firing, managing
from conversations.triggers.firing import fire_due, fire_if_due, start_again
from tests.conversations.recorded import Site
from tests.conversations.triggers.hooking import deliver, hooked
from tests.engine.support import says
from tests.workflows import shop

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _counts() -> None:
    """No count of an earlier test."""
    cache.clear()


def history(trigger: Trigger) -> list[tuple[str, int]]:
    return list(trigger.firings.order_by("pk").values_list("state", "times"))


def test_a_paused_one_is_run_by_hand_and_the_others_go_on_waiting(ann: User, site: Site) -> None:
    trigger, secret = hooked(ann)
    deliver(trigger, secret, "1")
    deliver(trigger, secret, "2")
    managing.pause(trigger)
    site.speaks(says("Done."))
    site.works()
    by_hand = fire_if_due(trigger.pk, by_hand=True)
    assert by_hand
    assert (by_hand.state, fire_due()) == (FiringState.STARTED, 0)
    assert history(trigger) == [("started", 1), ("queued", 1), ("started", 1)]


def test_what_failed_is_started_again_while_the_trigger_is_switched_off(
    ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shop.registered(monkeypatch, shop.order):
        trigger, secret = hooked(ann, policy="workflow:shop.order", text="")
        deliver(trigger, secret)
        mapping = {"item": {"path": "pull_request.title"}}
        Trigger.objects.update(off_reason="It failed 5 times in a row.", mapping=mapping)
        again = start_again(Firing.objects.get().pk)
    assert again
    assert (again.state, Trigger.objects.get().state) == (FiringState.STARTED, "off")


def test_running_by_hand_stores_no_more_than_may_wait(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    trigger, secret = hooked(ann)
    monkeypatch.setattr(firing, "QUEUED_MOST", 1)
    deliver(trigger, secret)
    for _ in range(2):
        fire_if_due(trigger.pk, by_hand=True)
    assert (history(trigger), Payload.objects.count()) == ([("started", 1), ("queued", 1), ("skipped", 1)], 2)
