"""The parent of a host's background cluster: what `manage.py worker` runs.

    worker ── cluster ── q2's own processes, most of them drains

It starts the cluster, and restarts it when it dies or goes silent: django-q2 can hang silently when one of its idle
workers is killed. It ends drains that hang, asks for each that is missing, and sweeps for what is due. When told to
stop, it writes the stop mark, which drains read, because django-q2 tells its workers nothing.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from django.conf import settings
from django.db import Error, connection

from conversations.approvals.expiry import expire_due
from conversations.database.disk import report_if_full
from conversations.ledger import wakeup
from conversations.ledger.claims import next_lapse
from conversations.notifications.events import notify_ended
from conversations.notifications.mail import Notifier
from conversations.notifications.webhooks.sending import Sender
from conversations.notifications.webhooks.telling import tell_of_gates
from conversations.prompts import killswitch, signals
from conversations.prompts.waking import next_wake, wake_due
from conversations.triggers import firing
from conversations.verification.all import ensure_schedule
from conversations.worker import hosts
from conversations.worker.children import Child, Family
from conversations.worker.processes import DeathWatch, is_in_group, kill_in_group

logger = logging.getLogger(__name__)

STOP_MARGIN_SECONDS = 15.0
"""A tool that ignores being stopped delays the drain for up to 10 s; then q2 takes up to 4.5 s to end (measured)."""
LOOK_SECONDS = 0.2
"""Time between looks whether a new cluster is ready, or the drains of a replaced one are gone; the least of a round."""
LACK_SECONDS = 0.5
"""Time between rounds while a drain is missing: from the one that finds it on, its death is noticed at once."""
HUNG_SECONDS = 10.0
"""How long a drain has to renew a lease that ran out while the database answered. One that does not hangs."""
WATCH_SECONDS = 3.0
"""Time between looks while turns run: how soon the death of their process is noticed where no system tells of it."""
LAPSED_SECONDS = 0.1
"""A lease is looked at so long after it ran out, and its drain's, which was renewed slightly before it."""


class Parent:
    """The supervisor of a host's background cluster. Runs until it is told to stop.

    It calls `say` with what the person at the terminal needs to know: that turns are taken up from now on.
    """

    def __init__(self, say: Callable[[str], None] = logger.info) -> None:
        self.say, self._ready = say, False
        self.host, self.family = hosts.this_host(), Family()
        self.notifier, self.sender = Notifier(), Sender()
        self._drains = DeathWatch()
        self._lapsed: dict[str, float] = {}  # since when leases of drains are seen to have run out, by token
        environment = {**os.environ, hosts.PARENT: str(os.getpid())}
        command = [sys.executable, "manage.py", "cluster"]
        self.cluster = Child("background cluster", command, settings.BASE_DIR, environment)
        self._beat = 0.0  # the last one of the cluster, by the database's clock ...
        self._heard_at = time.monotonic()  # ... and when it was first seen here
        self._start_patience = settings.AGENTSITE_START_SECONDS  # doubled by each cluster that never had a beat
        self._patience = self._start_patience  # until the first beat
        self._pause = settings.AGENTSITE_SWEEP_SECONDS  # before the next round

    def __call__(self) -> None:
        """Start the cluster and supervise it; return when it has ended."""
        with self.family.watching():
            self._prepare_cluster()
            ensure_schedule()
            self.family.add(self.cluster)
            try:
                while not self.family.stopping:
                    self.tend()
                    self._wait()
            finally:
                self._drains.close()
                self._mark_stop()
                self.family.stop(settings.AGENTSITE_STOP_SECONDS + STOP_MARGIN_SECONDS)

    def tend(self) -> None:
        """Do one round: restart or replace the cluster, ask for missing drains, see to what is due, and notify people.

        While the kill switch is on, this stops what a lost worker left running.
        """
        self._drains.close()  # what ended would wake every wait, also while the database is away
        try:
            restart_seconds = self._tend_cluster()
            wakeup.ask_for_beat(self.host)
            lack_seconds = self._tend_drains()
            self._pause = max(min(self._until_next_look(), restart_seconds, lack_seconds), LOOK_SECONDS)
            expire_due()
            wake_due()
            firing.fire_due()
            tell_of_gates()
            notify_ended()
            self.sender.look()
            killswitch.enforce()
            signals.swept.send_robust(None)
        except Error as error:
            if not report_if_full(error):
                logger.warning("the database does not answer; looking again", exc_info=True)
            self._heard_at = time.monotonic()  # without the database there can be no beat
            self._lapsed.clear()  # nor can a lease be renewed
            connection.close()
        self.notifier.look()  # in a thread of its own: a failure there says nothing about the database or the cluster

    def _wait(self) -> None:
        """Wait for the next round, or until the cluster or a drain dies.

        Until the cluster is ready, look often whether it is: somebody waits to be told.
        """
        ends, woken = time.monotonic() + self._pause, False
        while not (woken or self.family.stopping) and (left := ends - time.monotonic()) > 0:
            starting = self.cluster.running and not self._ready
            woken = self.family.wait(min(left, LOOK_SECONDS) if starting else left, self._drains.descriptors)
            if starting:
                self._look_whether_ready()

    def _look_whether_ready(self) -> None:
        with suppress(Error):  # the next round reports it
            self._ready = hosts.is_ready(self.host, os.getpid())
        if self._ready:
            self.say(f"The worker {self.host} is ready: it runs turns.")

    @staticmethod
    def _until_next_look() -> float:
        """The seconds until the next round: soon while turns run, when a lease runs out, and when a sleep is over or a
        trigger is due.
        """
        usual = min(settings.AGENTSITE_SWEEP_SECONDS, settings.AGENTSITE_BEAT_SECONDS / 3)
        lapses = next_lapse()
        soon = usual if math.isinf(lapses) else min(usual, WATCH_SECONDS, lapses + LAPSED_SECONDS)
        return min(soon, next_wake(), firing.next_look())

    def _tend_cluster(self) -> float:
        """Keep the cluster running. Return the seconds until it starts again; infinity while it runs."""
        if self.cluster.running:
            hosts.go_on(self.host, os.getpid())  # an interrupted replacement left the stop mark
            if self._silence() > self._patience:
                self._replace()
        elif (left := self.cluster.tend()) is not None:
            return left
        else:
            self._prepare_cluster()
        return math.inf

    def _tend_drains(self) -> float:
        """Bury what died, end what hangs, and ask for each missing drain. Return the seconds until the next look;
        infinity: none is missing.

        A cluster that does not run is not asked: what nobody takes would pile up, and be in the way once it runs.
        """
        hosts.bury_dead(self.host)
        live = hosts.live_drains(self.host)
        self._drains.watch(map(hosts.process_of, live.values()))
        missing = [number for number in range(settings.AGENTSITE_DRAINS) if number not in live]
        if not self.cluster.running:
            return math.inf
        hung = self._end_hung()
        for number in missing:
            if number not in hung:
                wakeup.ask_for_drain(self.host, number)
        return LACK_SECONDS if missing else math.inf

    def _end_hung(self) -> set[int]:
        """End the drains of this cluster that have hung for HUNG_SECONDS; return the numbers of all that seem to.

        Nobody is to take their numbers before: it would be the process that short tasks run in.
        """
        group, now = self.cluster.pid, time.monotonic()
        lapsed = {
            token: number
            for number, token in hosts.lapsed_drains(self.host).items()
            if is_in_group(hosts.process_of(token), group)
        }
        self._lapsed = {token: self._lapsed.get(token, now) for token in lapsed}
        for token, since in self._lapsed.items():
            if now - since > HUNG_SECONDS:
                logger.error("drain %d hangs: it is ended, and its turns go on in others", lapsed[token])
                kill_in_group(hosts.process_of(token), group)
        return set(lapsed.values())

    def _silence(self) -> float:
        """Return the seconds without a beat, by this process's clock, which stops while the machine sleeps."""
        if (beat := hosts.last_beat(self.host)) != self._beat:
            self._beat, self._heard_at = beat, time.monotonic()
            self._patience = settings.AGENTSITE_BEAT_SECONDS
            self._start_patience = settings.AGENTSITE_START_SECONDS
        return time.monotonic() - self._heard_at

    def _replace(self) -> None:
        """Replace a cluster that runs no tasks any more. Its drains may be fine, so they get time to finish.

        If the parent is told to stop meanwhile, this cluster ends as usual.
        """
        logger.error("no background task ran for %d seconds: restarting the cluster", self._patience)
        hosts.stop(self.host)
        deadline = time.monotonic() + settings.AGENTSITE_STOP_SECONDS + STOP_MARGIN_SECONDS
        while hosts.live_drains(self.host) and time.monotonic() < deadline:
            if self.family.stopping:
                return
            self.family.wait(LOOK_SECONDS)
        self.cluster.stop(0, lambda: True)
        if self._patience >= self._start_patience:
            self._start_patience *= 2  # on a busy machine it may only have been slow to start
        self._prepare_cluster()
        self.cluster.start()

    def _prepare_cluster(self) -> None:
        """Prepare for a new cluster: free the numbers of an old one's drains, and allow time for the first beat."""
        self._beat = hosts.begin(self.host, os.getpid())
        self._heard_at, self._patience = time.monotonic(), self._start_patience

    def _mark_stop(self) -> None:
        try:
            hosts.stop(self.host)
        except Error:
            logger.warning("the stop mark could not be written; running turns will be cut off", exc_info=True)
