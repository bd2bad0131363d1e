"""Noticing the commits of other processes, on a database connection of its own.

On SQLite a counter that changes with every commit of another connection is polled. On PostgreSQL the writers send hints
after their commits (`conversations.database.hints`). Both only say where to look: what happened is read from the
tables, and whoever waits here looks now and then by itself, since a hint may be lost.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from dataclasses import dataclass, field

from django.db import DEFAULT_DB_ALIAS, Error, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from conversations.database.hints import CHANNEL, WORKERS, direct_connection

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0
"""Seconds between two attempts to connect."""


@dataclass(frozen=True)
class ChangeNotice:
    """Where something may have changed: conversations whose steps, drafts or columns did. `everything`: anywhere.

    `work`: drains have something to claim or to stop. Only PostgreSQL's hints say so, so it is not compared.
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

    def __init__(self) -> None:
        self._connection: BaseDatabaseWrapper | None = None
        self._away = False  # since the last attempt to connect

    def wait(self, seconds: float) -> ChangeNotice | None:
        """Return what changed since the last call, after at most `seconds`; None if nothing did.

        The first call returns `everything`, and so does the first after a lost connection. Raises no database error.
        """
        try:
            if self._connection is None:
                self._connection = self._connect()
                self._away = False
                return ChangeNotice(everything=True)
            return self._next(self._connection, time.monotonic() + seconds)
        except Error:
            if not self._away:
                logger.warning("the database does not answer the watch; reconnecting", exc_info=True)
            self._away = True
            self.close()
            time.sleep(min(seconds, AGAIN_SECONDS))
            return None

    def close(self) -> None:
        """Close the connection, whatever state it is in. The next wait opens a new one."""
        gone, self._connection = self._connection, None
        if gone is not None:
            with suppress(Error):
                gone.close()

    def _connect(self) -> BaseDatabaseWrapper:
        raise NotImplementedError

    def _next(self, connection: BaseDatabaseWrapper, until: float) -> ChangeNotice | None:
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


class SQLiteWatch(Watch):
    """Polls the counter of commits, every so many seconds: on average a commit waits for half of it."""

    def __init__(self, poll_seconds: float) -> None:
        super().__init__()
        self._poll_seconds = poll_seconds

    def _connect(self) -> BaseDatabaseWrapper:
        new = connections.create_connection(DEFAULT_DB_ALIAS)
        new.ensure_connection()
        self._version = _data_version(new)
        return new

    def _next(self, connection: BaseDatabaseWrapper, until: float) -> ChangeNotice | None:
        while (notice := self._notice(connection)) is None and (left := until - time.monotonic()) > 0:
            time.sleep(min(self._poll_seconds, left))
        return notice

    def _notice(self, connection: BaseDatabaseWrapper) -> ChangeNotice | None:
        return ChangeNotice(everything=True) if self._committed(connection) else None

    def _committed(self, connection: BaseDatabaseWrapper) -> bool:
        """Whether others have committed since the last call. Ask before reading: a commit meanwhile counts again."""
        before, self._version = self._version, _data_version(connection)
        return self._version != before


def _data_version(connection: BaseDatabaseWrapper) -> int:
    with connection.wrap_database_errors:  # without a cursor of Django's, which takes three times as long
        version: int = connection.connection.execute("PRAGMA data_version").fetchone()[0]
    return version


def open_watch(poll_seconds: float) -> Watch:
    """Return a watch on the site's database. It connects at the first wait, in the thread that waits."""
    return PostgresWatch() if connection.vendor == "postgresql" else SQLiteWatch(poll_seconds)
