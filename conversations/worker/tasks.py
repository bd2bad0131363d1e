"""The tasks that django-q2 runs: hardly more than wake-ups. The rows are the truth; one more or less does no harm."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from django.conf import settings

from conversations.database.crashpoints import crashpoint
from conversations.erasure import conversations as erasure
from conversations.files import pending, storage
from conversations.verification.all import verify_nightly
from conversations.worker import drain as drains
from conversations.worker import hosts
from conversations.worker.sweeping import sweep_old

logger = logging.getLogger(__name__)


def drain(number: int) -> int:
    """Be this host's drain with this number until it is told to stop, unless another process is."""
    ran = drains.drain(number)
    crashpoint("before_ack")
    return ran


def beat() -> None:
    """Show that the cluster of this host still runs tasks."""
    hosts.beat(hosts.this_host())


def nightly() -> None:
    """Check all ledgers and sweep what nobody needs any more, once a night for all hosts.

    File contents are swept only if the ledgers are sound, as these tell which contents are unused. All of this may take
    long; it beats meanwhile.
    """
    alive = Alive(hosts.this_host())
    run = verify_nightly(alive)
    if run:
        _run_sweep(erasure.sweep_hidden, alive)
        _run_sweep(erasure.sweep, alive)
        _run_sweep(pending.sweep, alive)
        _run_sweep(sweep_old, alive)
    if run and not run.count:
        _run_sweep(storage.sweep, alive)


class Alive:
    """Beats for a host during a long task, at most every few seconds: drains occupy all the other processes."""

    def __init__(self, host: str) -> None:
        self.host, self._beat_at = host, -math.inf

    def __call__(self) -> None:
        """Note that the task is making progress."""
        if time.monotonic() - self._beat_at > settings.AGENTSITE_BEAT_SECONDS / 6:
            hosts.beat(self.host)
            self._beat_at = time.monotonic()


def _run_sweep(sweep: Callable[[Callable[[], object]], int], alive: Callable[[], object]) -> None:
    """Run a sweep; a failure is logged, and does not keep other work from being done."""
    try:
        sweep(alive)
    except Exception:
        logger.exception("a nightly sweep failed")
