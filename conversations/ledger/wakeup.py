"""Wake-ups: tasks for the clusters of hosts, which start the drains that a host lacks, and show that it is alive.

A wake-up is only a hint: prompts wait in the database, drains that run find them by themselves, and the parent asks for
missing drains as well. Each cluster has its own queue in the database. So the tasks it runs show that this cluster
works, and a cluster that went silent cannot keep wake-ups from the others.
"""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import Error
from django_q.brokers import get_broker
from django_q.tasks import async_task

from conversations.database.crashpoints import crashpoint
from conversations.database.sql import Clock
from conversations.models import Drain, Worker

logger = logging.getLogger(__name__)

NO_LIMIT = -1
"""The timeout of a django-q2 task that may run forever. A drain that was cut off would leave its leases to run out."""
WAITING_MOST = 200
"""Tasks that wait for one host at most. While a drain is missing, each message asks for it; and a heartbeat that waits
behind thousands would come too late."""


def wake() -> None:
    """Ask each live host for the drains that it lacks. Those that it has look for work by themselves.

    Never raises if the database is unavailable: that costs seconds, not the turn.
    """
    crashpoint("before_wake")
    try:
        for host, number in _missing():
            ask_for_drain(host, number)
    except Error:
        logger.warning("no missing drain could be asked for; the worker itself will do it", exc_info=True)


def ask_for_drain(host: str, number: int) -> None:
    """Queue the task that is this host's drain with this number."""
    _ask(host, "drain", number, timeout=NO_LIMIT)


def ask_for_beat(host: str) -> None:
    """Queue the heartbeat task on this host's cluster."""
    _ask(host, "beat")


def _ask(host: str, task: str, *args: int, **options: int) -> None:
    """Queue a task for this host's cluster, unless it has so many that this would only say the same again."""
    if get_broker(host).queue_size() < WAITING_MOST:
        async_task(f"conversations.worker.tasks.{task}", *args, cluster=host, **options)


def _missing() -> list[tuple[str, int]]:
    """Return the drains that live hosts lack, as host and number."""
    working = Worker.objects.filter(stopping=False, beat_at__gt=Clock() - settings.AGENTSITE_BEAT_SECONDS)
    wanted = {(host, number) for host, drains in working.values_list("host", "drains") for number in range(drains)}
    return sorted(wanted.difference(Drain.objects.filter(until__gt=Clock()).values_list("host", "number")))
