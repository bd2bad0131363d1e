"""Renewing leases, in a thread with its own connection, so that a busy event loop does not lose its prompts."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from django.conf import settings
from django.db import Error, connection

from conversations.database.crashpoints import crashpoint
from conversations.database.disk import report_if_full
from conversations.ledger.claims import Claim, renew, still_claimed

logger = logging.getLogger(__name__)

SILENCE_SECONDS = 20.0
"""A loop that has not ticked for this long hangs. Its leases lapse then: renewing them would hide it."""

AGAIN_SECONDS = 1.0
"""Time to wait after a renewal that failed: leases may have run out meanwhile, and others may take the turns."""


class LeaseKeeper:
    """Renews all held leases with one UPDATE every few seconds, as long as the loop ticks.

    `on_lost` is called, in the keeper's thread, with the leases that were lost. `keep_drain` renews the drain's own
    lease, for the seconds that it is given.
    """

    def __init__(self, on_lost: Callable[[list[Claim]], None], keep_drain: Callable[[float], object]) -> None:
        self._on_lost, self._keep_drain = on_lost, keep_drain
        self._held: dict[Claim, float] = {}  # when each was last renewed or slightly earlier, on the monotonic clock
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
        """Renew this lease from now on."""
        with self._lock:
            self._held[claim] = claim.at

    def drop(self, claim: Claim) -> None:
        """Stop renewing this lease."""
        with self._lock:
            self._held.pop(claim, None)

    def may_begin(self, claim: Claim) -> bool:
        """Whether at least a third of this lease is left: 10 of its 30 seconds, enough to start an effect.

        By this process's own clock, which goes on while the process is paused.
        """
        with self._lock:
            renewed = self._held.get(claim)
        return renewed is not None and time.monotonic() - renewed < settings.AGENTSITE_LEASE_SECONDS * 2 / 3

    def tick(self) -> None:
        """Note that the loop is alive."""
        self._ticked = time.monotonic()

    def _keep(self) -> None:
        silence = max(SILENCE_SECONDS, settings.AGENTSITE_LEASE_SECONDS)
        pause = settings.AGENTSITE_RENEW_SECONDS
        while not self._end.wait(pause):
            pause = settings.AGENTSITE_RENEW_SECONDS
            if time.monotonic() - self._ticked > silence:
                logger.error("the loop has not ticked for %d seconds; its leases lapse", silence)
                continue
            try:
                self._renew()
            except Error as error:
                if not report_if_full(error):
                    logger.warning("the leases could not be renewed; trying again", exc_info=True)
                connection.close()
                pause = AGAIN_SECONDS
        connection.close()

    def _renew(self) -> None:
        with self._lock:
            held = set(self._held)
        at = time.monotonic()
        crashpoint("before_renew")
        self._keep_drain(settings.AGENTSITE_LEASE_SECONDS)
        kept = renew(held, settings.AGENTSITE_LEASE_SECONDS)
        left = {claim for claim in held if claim.prompt not in kept}
        locked = still_claimed(left)
        with self._lock:
            lost = [claim for claim in left & self._held.keys() if claim.prompt not in locked]
            self._held |= {claim: at for claim in held & self._held.keys() if claim.prompt in kept}
        if lost:
            self._on_lost(lost)
