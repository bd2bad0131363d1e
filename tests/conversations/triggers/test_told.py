"""Webhooks are told of each firing that failed; its owner's only if that switched the trigger off."""

from __future__ import annotations

import json

import pytest
from django.contrib.auth.models import User

from conversations.models import Delivery, Trigger
from conversations.notifications.webhooks import managing
from conversations.triggers.firing import fire_due, fire_if_due
from tests.conversations.support import person
from tests.conversations.triggers.conftest import StillClock

pytestmark = pytest.mark.django_db


def test_a_trigger_that_fails_is_told(bob: User, clock: StillClock, settings: pytest.FixtureRequest) -> None:
    settings.AGENTSITE_TRIGGER_FAILURES = 2  # type: ignore[attr-defined]
    ann = person("ann", "have_webhook")
    managing.make("https://1.1.1.1/", events=["trigger.failed"])
    managing.make("https://1.1.1.1/", user=ann)
    managing.make("https://1.1.1.1/", user=bob)
    trigger = clock.every(ann)
    Trigger.objects.update(policy="workflow:gone")

    def told() -> list[tuple[str, int | None]]:
        return [(row.event, row.webhook.user_id) for row in Delivery.objects.order_by("pk")]

    clock.passes(minutes=5)
    fire_due()
    assert told() == [("trigger.failed", None)]
    clock.passes(minutes=5)
    fire_due()
    assert told() == [("trigger.failed", None)] * 2 + [("trigger.failed", ann.pk)]
    last = json.loads(Delivery.objects.get(webhook__user=ann).body)["data"]
    assert (last["trigger"], last["owner"], last["failures"], last["switched_off"]) == (trigger.pk, "ann", 2, True)
    assert last["reason"] == trigger.firings.latest("pk").reason
    fire_if_due(trigger.pk, by_hand=True)  # it fails again, but it is off already
    assert told()[3:] == [("trigger.failed", None)]
    trigger.delete()
    assert told() == []
