"""Waking a worker. A hint: the truth is the prompt's row, and the sweep finds what a lost wake-up left."""

from __future__ import annotations

import logging

from django_q.tasks import async_task

from conversations.crashpoints import crashpoint

logger = logging.getLogger(__name__)


def wake() -> None:
    """Ask for a drain."""
    crashpoint("before_wake")
    _ask("conversations.worker.tasks.drain")


def ask_for_beat(host: str) -> None:
    """Ask the cluster to show that it runs tasks."""
    _ask("conversations.worker.tasks.beat", host)


def _ask(task: str, *args: str) -> None:
    """Never raises: a broker that is down costs seconds, not the turn."""
    try:
        async_task(task, *args)
    except Exception:
        logger.warning("the broker does not answer; the sweep will find the work", exc_info=True)
