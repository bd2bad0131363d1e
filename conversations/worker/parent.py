"""`manage.py worker`: the parent of a host's background cluster.

    worker ── cluster ── q2's own processes; one of them drains

It starts the cluster, and starts it anew where it died or went silent: q2 can wedge without a word when an idle worker
of it is killed. It sweeps for work that no wake-up announced. When told to stop it writes the stop mark, which the
drain reads, because q2 tells its workers nothing.
"""

from __future__ import annotations

import logging
import os
import sys
import time

from django.conf import settings
from django.db import Error, connection

from conversations.approvals.expiry import expire_due
from conversations.database.disk import report_if_full
from conversations.ledger import wakeup
from conversations.ledger.claims import claimable
from conversations.notifications.mail import Teller
from conversations.prompts import killswitch
from conversations.verification.all import ensure_schedule
from conversations.worker import hosts
from conversations.worker.children import Child, Family

logger = logging.getLogger(__name__)

STOP_MARGIN_SECONDS = 15.0
"""A tool that does not end when told to keeps the drain for up to 10 s; then q2 takes up to 4.5 s to end (measured)."""
LOOK_SECONDS = 0.2
"""Between looks whether the drain of a cluster that is to be replaced has ended."""


class Parent:
    """Runs until it is told to stop."""

    def __init__(self) -> None:
        self.host, self.family = hosts.this_host(), Family()
        self.teller = Teller()
        environment = {**os.environ, hosts.PARENT: str(os.getpid())}
        command = [sys.executable, "manage.py", "cluster"]
        self.cluster = Child("background cluster", command, settings.BASE_DIR, environment)
        self._beat = 0.0  # the last one of the cluster, by the database's clock ...
        self._heard_at = time.monotonic()  # ... and when it was first seen here
        self._patience = settings.AGENTSITE_BEAT_SECONDS  # doubled by each cluster that came to no beat at all

    def __call__(self) -> None:
        """Start the cluster and look after it; returns when it has ended."""
        with self.family.watching():
            self._begin_anew()
            ensure_schedule()
            self.family.add(self.cluster)
            try:
                while not self.family.stopping:
                    self.tend()
                    self.family.wait(min(settings.AGENTSITE_SWEEP_SECONDS, settings.AGENTSITE_BEAT_SECONDS / 3))
            finally:
                self._mark_stop()
                self.family.stop(settings.AGENTSITE_STOP_SECONDS + STOP_MARGIN_SECONDS)

    def tend(self) -> None:
        """One look: start what died, replace what went silent, expire what is due, wake for work, tell of waits.

        While the kill switch is on, it stops what a lost worker left running.
        """
        try:
            self._tend_cluster()
            wakeup.ask_for_beat(self.host)
            if claimable(1) and hosts.drain_is_free(self.host):
                wakeup.ask_for_drain(self.host)
            expire_due()
            killswitch.enforce()
        except Error as error:
            if not report_if_full(error):
                logger.warning("the database does not answer; looking again", exc_info=True)
            self._heard_at = time.monotonic()  # nobody can be asked to beat without it, or beat
            connection.close()
        self.teller.look()  # in a thread of its own: whatever fails there says nothing of the database or the cluster

    def _tend_cluster(self) -> None:
        if self.cluster.running:
            hosts.go_on(self.host, os.getpid())  # a replacement that broke off left the stop mark
            if self._silence() > self._patience:
                self._replace()
        elif self.cluster.tend() is None:
            self._begin_anew()

    def _silence(self) -> float:
        """Seconds without a beat. By this process's clock, which stands still while the machine sleeps."""
        if (beat := hosts.last_beat(self.host)) != self._beat:
            self._beat, self._heard_at = beat, time.monotonic()
            self._patience = settings.AGENTSITE_BEAT_SECONDS
        return time.monotonic() - self._heard_at

    def _replace(self) -> None:
        """End a cluster that runs no tasks any more, and start another. Its drain may be well: it gets its time.

        Where all is to end meanwhile, so does this cluster: like any other.
        """
        logger.error("no background task ran for %d seconds: the cluster starts anew", self._patience)
        hosts.stop(self.host)
        deadline = time.monotonic() + settings.AGENTSITE_STOP_SECONDS + STOP_MARGIN_SECONDS
        while not hosts.drain_is_free(self.host) and time.monotonic() < deadline:
            if self.family.stopping:
                return
            self.family.wait(LOOK_SECONDS)
        self.cluster.stop(0, lambda: True)
        self._patience *= 2  # on a busy machine it may have died of haste
        self._begin_anew()
        self.cluster.start()

    def _begin_anew(self) -> None:
        """For a new cluster: nobody of an old one is left to hold the drain, and this one gets time for its beat."""
        self._beat = hosts.begin(self.host, os.getpid())
        self._heard_at = time.monotonic()

    def _mark_stop(self) -> None:
        try:
            hosts.stop(self.host)
        except Error:
            logger.warning("the stop mark could not be written; running turns are cut off", exc_info=True)
