"""Webhooks that arrive at the same moment: one id counts once, and no payload is lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection

from conversations.models import Firing, FiringState, Prompt
from tests.conversations.support import person
from tests.conversations.triggers.hooking import deliver, hooked

AT_ONCE = 12


@pytest.mark.django_db(transaction=True)
def test_each_id_counts_once() -> None:
    """Six ids, each twice."""
    cache.clear()
    trigger, secret = hooked(person("ann"))

    def sender(number: int) -> Any:
        try:
            return deliver(trigger, secret, str(number % (AT_ONCE // 2))).json()
        finally:
            connection.close()

    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(sender, range(AT_ONCE)))
    firings = [each["firing"] for each in answers]
    assert firings[: AT_ONCE // 2] == firings[AT_ONCE // 2 :]
    assert sorted(set(firings)) == list(Firing.objects.order_by("pk").values_list("pk", flat=True))
    states = list(Firing.objects.order_by("pk").values_list("state", flat=True))
    assert states == [FiringState.STARTED, *[FiringState.QUEUED] * (AT_ONCE // 2 - 1)]
    assert Prompt.objects.count() == 1
