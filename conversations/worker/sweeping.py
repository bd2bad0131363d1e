"""Rows that are deleted some time after they ended: the history of triggers, what people were told, and webhooks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from conversations.models import Delivery, Firing, FiringState, Notice
from conversations.models.prompt import ENDED

KEPT = timedelta(days=90)
"""How long the history of a trigger, a notice and a delivery of a webhook are kept."""
AT_ONCE = 1_000
"""Rows deleted in one statement, so that none holds up others for long."""


def sweep_old(alive: Callable[[], object] = lambda: None) -> int:
    """Delete firings, notices and deliveries of KEPT ago, but nothing that still waits. Return how many.

    `alive` is called often.

    A notice says that a person was told of a pause; it stays until its turn has ended.
    """
    before = timezone.now() - KEPT
    firings = Firing.objects.filter(fired_at__lt=before, open=False).exclude(state=FiringState.QUEUED)
    notices = Notice.objects.filter(Q(prompt=None) | Q(prompt__state__in=ENDED), at__lt=before)
    deliveries = Delivery.objects.filter(created_at__lt=before, next_at=None)
    return sum(_delete(rows, alive) for rows in (firings, notices, deliveries))


def _delete(rows: QuerySet[Any], alive: Callable[[], object]) -> int:
    deleted = 0
    while found := list(rows.order_by("pk").values_list("pk", flat=True)[:AT_ONCE]):
        alive()
        deleted += rows.model.objects.filter(pk__in=found).delete()[0]
    return deleted
