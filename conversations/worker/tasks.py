"""What django-q2 runs: wake-ups that carry nothing. The truth is in the rows; one more or less changes nothing."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from django.conf import settings

from conversations.database.crashpoints import crashpoint
from conversations.erasure import conversations as erasure
from conversations.files import storage
from conversations.verification.all import verify_nightly
from conversations.worker import drain as drains
from conversations.worker import hosts

logger = logging.getLogger(__name__)


def drain() -> int:
    """Run this host's prompts, if no other process of it does."""
    ran = drains.drain()
    crashpoint("before_ack")
    return ran


def beat() -> None:
    """Show that the cluster of this host still runs tasks."""
    hosts.beat(hosts.this_host())


def nightly() -> None:
    """Once a night, whatever the number of hosts: check all ledgers, and sweep what erasures and killed workers left.

    Contents of files only where the ledgers are good: they say which are nobody's. All of it may take long; it beats.
    """
    alive = Alive(hosts.this_host())
    run = verify_nightly(alive)
    if run:
        _swept(erasure.sweep, alive)
    if run and not run.count:
        _swept(storage.sweep, alive)


class Alive:
    """Beats for a host while a task of it goes on, however often it is told so: the drain may have the other worker."""

    def __init__(self, host: str) -> None:
        self.host, self._beat_at = host, -math.inf

    def __call__(self) -> None:
        """Something was done."""
        if time.monotonic() - self._beat_at > settings.AGENTSITE_BEAT_SECONDS / 6:
            hosts.beat(self.host)
            self._beat_at = time.monotonic()


def _swept(sweep: Callable[[Callable[[], object]], int], alive: Callable[[], object]) -> None:
    """Sweep; what goes wrong in it is in the log, and keeps nothing else from being done."""
    try:
        sweep(alive)
    except Exception:
        logger.exception("a sweep of the night broke off")
