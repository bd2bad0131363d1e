"""Waking workers. A hint: the truth is the prompt's row, and the sweep finds what a lost wake-up left.

Each host's cluster has a queue of its own, in the database: what it runs of it shows that this one runs tasks, and one
that went silent keeps no wake-up from the others.
"""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import Error
from django_q.tasks import async_task

from conversations.database.crashpoints import crashpoint
from conversations.database.sql import database_time
from conversations.models import Drain, Worker

logger = logging.getLogger(__name__)

NO_LIMIT = -1
"""What q2 calls a task that may run for ever: one that it cuts off leaves what it holds to the leases."""


def wake() -> None:
    """Ask each host that works for a drain, unless it has one, which looks for itself.

    Never raises: a database that is away costs seconds, not the turn.
    """
    crashpoint("before_wake")
    try:
        for host in _without_drain():
            ask_for_drain(host)
    except Error:
        logger.warning("no worker could be woken; the sweep will find the work", exc_info=True)


def ask_for_drain(host: str) -> None:
    """Ask this host's cluster to run prompts."""
    async_task("conversations.worker.tasks.drain", cluster=host, timeout=NO_LIMIT)


def ask_for_beat(host: str) -> None:
    """Ask this host's cluster to show that it runs tasks."""
    async_task("conversations.worker.tasks.beat", cluster=host)


def _without_drain() -> list[str]:
    time = database_time()
    working = Worker.objects.filter(stopping=False, beat_at__gt=time - settings.AGENTSITE_BEAT_SECONDS)
    drained = Drain.objects.filter(lease_until__gt=time).values("host")
    return list(working.exclude(host__in=drained).values_list("host", flat=True))
