"""Waking workers. A wake-up is only a hint: prompts wait in the database, and the sweep finds them without one.

Each host's cluster has its own queue in the database. So the tasks it runs show that this cluster works, and a cluster
that went silent cannot keep wake-ups from the others.
"""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import Error
from django_q.tasks import async_task

from conversations.database.crashpoints import crashpoint
from conversations.database.sql import database_time
from conversations.models import Worker

logger = logging.getLogger(__name__)

NO_LIMIT = -1
"""The timeout of a django-q2 task that may run forever. A drain that was cut off would leave its leases to run out."""


def wake() -> None:
    """Ask each live host without a drain to start one. A running drain looks for work by itself.

    Never raises if the database is unavailable: that costs seconds, not the turn.
    """
    crashpoint("before_wake")
    try:
        for host in _without_drain():
            ask_for_drain(host)
    except Error:
        logger.warning("no worker could be woken; the sweep will find the work", exc_info=True)


def ask_for_drain(host: str) -> None:
    """Queue the task that runs prompts on this host's cluster."""
    async_task("conversations.worker.tasks.drain", cluster=host, timeout=NO_LIMIT)


def ask_for_beat(host: str) -> None:
    """Queue the heartbeat task on this host's cluster."""
    async_task("conversations.worker.tasks.beat", cluster=host)


def _without_drain() -> list[str]:
    time = database_time()
    working = Worker.objects.filter(stopping=False, beat_at__gt=time - settings.AGENTSITE_BEAT_SECONDS)
    return list(working.filter(drain_until__lt=time).values_list("host", flat=True))
