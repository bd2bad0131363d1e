"""Counts of /v1: what this process counted and has not written yet, and the thread that writes it.

Whoever counts never waits. What comes together within PAUSE_SECONDS is one transaction, and if the database does not
take it, it is tried again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict

from django.conf import settings
from django.db import DataError, Error, IntegrityError, connections

from agents.passthrough.caller import Tokens
from agents.providers.common.prices import cost_in_thread
from conversations.database.busy import brief_waits, is_locked
from conversations.database.threads import DatabaseThread
from conversations.usage import passthrough
from conversations.usage.passthrough import Counted, Place

logger = logging.getLogger(__name__)

PAUSE_SECONDS = 0.1
"""How long counts are gathered before they are written."""
AGAIN_SECONDS = 1.0
"""The wait after a failed write."""
LOCK_SECONDS = 0.2
"""How long a write waits for somebody else's lock, e.g. of those who erase a person: what others used waits with it."""
ROWS_MOST = 10_000
"""Rows that wait, e.g. while the database is away. If there are more, those of each key and model become one."""
EXIT_SECONDS = 5.0
"""How long a process that ends waits for its last counts to be written."""


class Counts:
    """What was counted and is not in the database yet."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        """Held for a moment by whoever counts, or compares what is counted with a limit."""
        self.settled = threading.Lock()
        """Held while rows are committed and removed here: whoever has it finds each count in one place only.

        Nobody who has it waits for a lock of the database: those who look up their keys wait for it.
        """
        self._rows: defaultdict[Place, Counted] = defaultdict(Counted)
        self._taken: dict[Place, Counted] = {}  # those that are being written
        self._answers: list[tuple[Place, Tokens]] = []  # their prices are not known yet
        self._thread = DatabaseThread("passthrough-writer")
        self._scheduled = self._failed = False
        self._hurry = threading.Event()

    def add_request(self, place: Place) -> None:
        """Count a request. Call it with the lock."""
        self._rows[place].requests += 1
        self._schedule()

    def add_answer(self, place: Place, tokens: Tokens) -> None:
        """Count the tokens of an answer. Call it with the lock."""
        self._rows[place].add_answer(tokens)
        self._answers.append((place, tokens))
        self._schedule()

    def of(self, user: int) -> list[tuple[Place, Counted]]:
        """Return what a person's keys used that is not in the database yet. Call it with both locks."""
        return [row for rows in (self._taken, self._rows) for row in rows.items() if row[0].user == user]

    def flush(self, seconds: float = EXIT_SECONDS) -> None:
        """Write what waits, in at most this time. Call it where no event loop runs."""
        self._hurry.set()
        try:
            asyncio.run(asyncio.wait_for(self._write_all(), seconds))
        except TimeoutError:
            pass
        finally:
            self._hurry.clear()
        with self.lock:
            if left := len(self._taken) + len(self._rows):
                logger.error("usage of /v1 was not written: the database did not take %d rows", left)

    async def _write_all(self) -> None:
        await self._thread(self._write)
        while self._rows:
            await asyncio.sleep(AGAIN_SECONDS)
            await self._thread(self._write)

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._thread.run_later(self._write_soon)

    def _write_soon(self) -> None:
        self._hurry.wait(AGAIN_SECONDS if self._failed else PAUSE_SECONDS)
        with self.lock:
            self._scheduled = False
        self._write()
        with self.lock:
            if self._failed and not self._hurry.is_set():
                self._schedule()

    def _write(self) -> None:
        """Write everything in one transaction; if the database does not take it all, each row in one of its own."""
        self._price()
        if not self._rows:
            return
        with self.lock:
            self._taken, self._rows = self._rows, defaultdict(Counted)
        try:
            try:
                self._move(dict(self._taken))
            except Error as error:
                if not _is_of_some(error):
                    raise
                self._move_each(dict(self._taken))
        except Error as error:
            connections.close_all()  # it may be broken
            if not self._failed:
                logger.warning("usage of /v1 cannot be written (%s); it is kept and tried again", error)
        finally:
            with self.lock:
                self._failed = bool(self._taken)
                self._put_back()

    def _move(self, rows: Mapping[Place, Counted]) -> None:
        """Write some of the taken rows, which are in the database from then on, and no longer here."""
        with ExitStack() as settled:
            with brief_waits(LOCK_SECONDS):
                passthrough.add(rows)
                settled.enter_context(self.settled)  # for the commit alone, which waits for nobody
            with self.lock:
                for place in rows:
                    del self._taken[place]

    def _move_each(self, rows: Mapping[Place, Counted]) -> None:
        """Write one row after the other, so that no row holds up those of other people.

        Rows that the database refuses for what is in them are dropped. Raises Error if some are left.
        """
        locked: dict[int, Error] = {}
        for place, counted in rows.items():
            if place.user in locked:
                continue
            try:
                self._move({place: counted})
            except (DataError, IntegrityError):
                logger.exception("usage of /v1 was refused by the database: %s, %s", place, counted)
                with self.lock:
                    del self._taken[place]
            except Error as error:
                if not is_locked(error):
                    raise
                locked[place.user] = error
        if locked:
            raise next(iter(locked.values()))

    def _put_back(self) -> None:
        for place, counted in self._taken.items():
            self._rows[place].add(counted)
        self._taken = {}
        if len(self._rows) > ROWS_MOST:
            minute = max(place.minute for place in self._rows)
            crowded, self._rows = self._rows, defaultdict(Counted)
            for place, counted in crowded.items():
                self._rows[place._replace(minute=minute)].add(counted)

    def _price(self) -> None:
        """Add the prices of the answers that came in. It takes too long for whoever counts them."""
        with self.lock:
            answers, self._answers = self._answers, []
        for place, tokens in answers:
            cost = cost_in_thread(settings.OPENAI_BASE_URL, asdict(tokens), place.model)
            with self.lock:
                self._rows[place].cost_nano_usd += cost or 0
                self._rows[place].unpriced += cost is None


def _is_of_some(error: Error) -> bool:
    """Whether the database may take some rows although it did not take all."""
    return isinstance(error, (DataError, IntegrityError)) or is_locked(error)


COUNTS = Counts()
"""Those of this process."""
