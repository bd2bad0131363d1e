"""Noticing the commits of other processes, by the hints that these send (`conversations.database.hints`).

They only say where to look: what happened is read from the tables, and whoever waits here looks now and then by itself,
since a hint may be lost. Pages on SQLite get none (`conversations.push.watch`).
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar

from django.db import Error, connection
from django.db.backends.base.base import BaseDatabaseWrapper

from conversations.database.hints import CHANNEL, WORKERS, direct_connection
from conversations.database.pipes import Pipe

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0
"""Seconds between two attempts to connect."""


@dataclass(frozen=True)
class ChangeNotice:
    """Where something may have changed: conversations whose steps, drafts or columns did. `everything`: anywhere.

    `work`: drains have something to claim or to stop. Pages are not told so on SQLite, so it is not compared.
    """

    conversations: frozenset[int] = frozenset()
    everything: bool = False
    work: bool = field(default=False, compare=False)

    @property
    def concerns_drains(self) -> bool:
        """Whether they may have something to claim or to stop."""
        return self.work or self.everything


class Watch:
    """Waits for changes, in one thread. Changes between two waits are reported by the second."""

    problems: ClassVar[type[Exception]] = Error
    """What a connection raises that is broken, or cannot be made."""

    def __init__(self) -> None:
        self._connection: Any = None
        self._away = False  # since the last attempt to connect

    def wait(self, seconds: float) -> ChangeNotice | None:
        """Return what changed since the last call, after at most `seconds`; None if nothing did.

        The first call returns `everything`, and so does the first after a lost connection. Raises no `problems`.
        """
        try:
            if self._connection is None:
                self._connection = self._connect()
                self._away = False
                return ChangeNotice(everything=True)
            return self._next(self._connection, time.monotonic() + seconds)
        except self.problems:
            if not self._away:
                logger.warning("commits are not heard of; looking once a second until they are", exc_info=True)
            self._away = True
            self.close()
            time.sleep(min(seconds, AGAIN_SECONDS))
            return None

    def close(self) -> None:
        """Close the connection, whatever state it is in. The next wait opens a new one."""
        gone, self._connection = self._connection, None
        if gone is not None:
            with suppress(self.problems):
                gone.close()

    def _connect(self) -> Any:
        raise NotImplementedError

    def _next(self, connection: Any, until: float) -> ChangeNotice | None:
        raise NotImplementedError


class PostgresWatch(Watch):
    """Listens for hints, which arrive after the commits they are about, and are kept until read.

    EVERYTHING is no number. What another version or program says, which nobody here understands, means the same.
    """

    def _connect(self) -> BaseDatabaseWrapper:
        new = direct_connection()
        with new.cursor() as cursor:
            cursor.execute(f"LISTEN {CHANNEL}")
        return new

    def _next(self, connection: BaseDatabaseWrapper, until: float) -> ChangeNotice | None:
        seconds = max(until - time.monotonic(), 0)
        with connection.wrap_database_errors:
            payloads = [each.payload for each in connection.connection.notifies(timeout=seconds, stop_after=1)]
        if not payloads:
            return None
        told = {hint for payload in payloads for hint in payload.split(",")}
        found = {hint for hint in told if hint.isdecimal()}
        numbers = frozenset(map(int, found - {WORKERS}))
        return ChangeNotice(numbers, everything=told != found, work=WORKERS in told)


class PipeWatch(Watch):
    """Listens for hints to drains, on SQLite: that there is work, wherever."""

    problems = OSError

    def _connect(self) -> Pipe:
        return Pipe()

    def _next(self, connection: Pipe, until: float) -> ChangeNotice | None:
        return ChangeNotice(work=True) if connection.wait(max(until - time.monotonic(), 0)) else None


def open_work_watch() -> Watch:
    """Return a watch for drains. It connects at the first wait, in the thread that waits."""
    return PostgresWatch() if connection.vendor == "postgresql" else PipeWatch()
