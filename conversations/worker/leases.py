"""The thread that keeps a drain's leases, on a connection of its own: a busy loop must not lose its prompts."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from django.conf import settings
from django.db import Error, connection

from conversations.database.crashpoints import crashpoint
from conversations.database.disk import report_if_full
from conversations.ledger.claims import Claim, renew

logger = logging.getLogger(__name__)

SILENCE_SECONDS = 20.0
"""A loop that has not ticked for so long hangs: its leases are let go, or a live thread would mask it."""


class LeaseKeeper:
    """Renews every held lease by one UPDATE each few seconds, while the loop ticks.

    `on_lost` hears, in the keeper's thread, which leases were lost. `keep_drain` prolongs the drain's own by so many
    seconds; where it says False another process drains by now, and `on_replaced` hears of it.
    """

    def __init__(
        self,
        on_lost: Callable[[list[Claim]], None],
        keep_drain: Callable[[float], bool],
        on_replaced: Callable[[], None],
    ) -> None:
        self._on_lost, self._keep_drain, self._on_replaced = on_lost, keep_drain, on_replaced
        self._held: dict[Claim, float] = {}  # when each was last renewed, by the monotonic clock, or a little before
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._ticked = time.monotonic()
        self._thread = threading.Thread(target=self._keep, name="leases", daemon=True)

    def __enter__(self) -> LeaseKeeper:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()

    def hold(self, claim: Claim) -> None:
        """Renew this one from now on."""
        with self._lock:
            self._held[claim] = claim.at

    def drop(self, claim: Claim) -> None:
        """Renew it no more."""
        with self._lock:
            self._held.pop(claim, None)

    def may_begin(self, claim: Claim) -> bool:
        """Whether a third of this lease is left at least: 10 of its 30 seconds, time enough to begin an effect.

        From this process's own clock, which runs on while the process stands still.
        """
        with self._lock:
            renewed = self._held.get(claim)
        return renewed is not None and time.monotonic() - renewed < settings.AGENTSITE_LEASE_SECONDS * 2 / 3

    def tick(self) -> None:
        """The loop lives."""
        self._ticked = time.monotonic()

    def _keep(self) -> None:
        silence = max(SILENCE_SECONDS, settings.AGENTSITE_LEASE_SECONDS)
        while not self._end.wait(settings.AGENTSITE_RENEW_SECONDS):
            if time.monotonic() - self._ticked > silence:
                logger.error("the loop has not ticked for %d seconds; its leases lapse", silence)
                continue
            try:
                self._renew()
            except Error as error:
                if not report_if_full(error):
                    logger.warning("the leases could not be renewed; trying again", exc_info=True)
                connection.close()
        connection.close()

    def _renew(self) -> None:
        with self._lock:
            held = set(self._held)
        at = time.monotonic()
        crashpoint("before_renew")
        if not self._keep_drain(settings.AGENTSITE_LEASE_SECONDS):
            self._on_replaced()
        kept = renew(held, settings.AGENTSITE_LEASE_SECONDS)
        with self._lock:
            lost = [claim for claim in held & self._held.keys() if claim.prompt not in kept]
            self._held |= {claim: at for claim in held & self._held.keys() if claim.prompt in kept}
        if lost:
            self._on_lost(lost)
