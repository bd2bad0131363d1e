"""Two that look at a trigger at the same moment: what is due fires once, and what is deleted does not fire."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from conversations.models import Firing, FiringState, Prompt, Trigger
from conversations.triggers import managing
from conversations.triggers.firing import fire_due, fire_if_due
from tests.budget import examples
from tests.conversations.support import person
from tests.conversations.triggers.conftest import StillClock

DUE, DELETED = 30, examples(3)


@pytest.mark.django_db(transaction=True)
def test_each_fires_once(clock: StillClock, settings: Any) -> None:
    settings.AGENTSITE_TRIGGERS_A_PERSON = DUE
    people = [person("ann"), person("bob")]
    for number in range(DUE):
        clock.every(people[number % 2])
    clock.time += timedelta(minutes=5)

    def scheduler(_: int) -> int:
        try:
            return fire_due() + fire_due()  # what the other one held at that moment
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        started = sum(threads.map(scheduler, range(2)))
    states = Firing.objects.values_list("trigger", "state")
    assert sorted(states) == [(pk, FiringState.STARTED) for pk in sorted(Trigger.objects.values_list("pk", flat=True))]
    assert (started, Prompt.objects.count()) == (DUE, DUE)


@pytest.mark.django_db(transaction=True)
def test_one_is_deleted_while_it_fires(clock: StillClock) -> None:
    ann = person("ann")

    def fires(pk: int) -> None:
        try:
            for _ in range(100):
                if fire_if_due(pk, by_hand=True) is None:
                    return
        finally:
            connection.close()

    for _ in range(DELETED):
        trigger = clock.every(ann)
        with ThreadPoolExecutor(1) as threads:
            firing = threads.submit(fires, trigger.pk)
            try:
                while trigger.firings.count() < 2:
                    pass
            finally:
                managing.delete(trigger)
        firing.result()
    assert (Trigger.objects.count(), Firing.objects.count()) == (0, 0)
