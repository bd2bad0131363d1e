"""The watch: notices that other processes wrote steps or drafts, on a database connection of its own.

On SQLite a counter that changes with every commit of another connection is polled fifty times a second. On
PostgreSQL the writers send hints after their commits (`conversations.database.hints`). Both only say where to look:
what happened is read from the ledger, and what no hint told of is found by the tailer's next look.

Changes to a conversation as a whole are not steps (`conversations.prompts.listing`), so there are hints of these on
SQLite too. Only the process in which they are made hears of them, and that is the one that serves the pages; redactions
and erasures by other processes are found by their rows, as is the kill switch, with each commit.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from django.db import DEFAULT_DB_ALIAS, Error, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from conversations.database.hints import CHANNEL, EVERYTHING, direct_connection, hinted

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.02
"""Interval between two reads of SQLite's counter. On average a commit waits for half of it."""
AGAIN_SECONDS = 1.0
"""Seconds between two attempts to connect."""
UNSAID = (
    "SELECT (SELECT max(id) FROM conversations_killswitch WHERE off_at IS NULL),"
    " (SELECT max(id) FROM conversations_erasure), (SELECT max(id) FROM conversations_redaction)"
)
"""What no step records, though another process may do it: the row by which the kill switch is on, which concerns every
page; the last erasure, whose conversation does not exist any more; and the last redaction.
"""


@dataclass(frozen=True)
class ChangeNotice:
    """Where something may have changed: conversations whose steps, drafts or columns did. `everything`: read all."""

    conversations: frozenset[int] = frozenset()
    everything: bool = False


class Watch:
    """Waits for changes, in one thread. Changes between two waits are reported by the second."""

    def __init__(self) -> None:
        self._connection: BaseDatabaseWrapper | None = None

    def wait(self, seconds: float) -> ChangeNotice | None:
        """Return what changed since the last call, after at most `seconds`; None if nothing did.

        The first call returns `everything`, and so does the first after a lost connection. Raises no database error.
        """
        try:
            if self._connection is None:
                self._connection = self._connect()
                return ChangeNotice(everything=True)
            return self._next(self._connection, time.monotonic() + seconds)
        except Error:
            logger.warning("the database does not answer the watch; reconnecting", exc_info=True)
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
    """Listens for hints, which arrive after the commits they are about, and are kept until read."""

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
        found = frozenset(int(hint) for payload in payloads if payload for hint in payload.split(","))
        return ChangeNotice(found, EVERYTHING in payloads)


class SQLiteWatch(Watch):
    """Polls the counter of commits, and looks for what they wrote."""

    def __init__(self) -> None:
        super().__init__()
        self._hints: deque[str] = deque()
        hinted.connect(self._on_hint)  # a weak reference: it ends with this watch

    def _on_hint(self, hint: str, **more: object) -> None:
        self._hints.append(hint)  # in the thread that made the change

    def _take_hinted(self) -> frozenset[int]:
        hints = [self._hints.popleft() for _ in range(len(self._hints))]
        return frozenset(int(hint) for hint in hints if hint != EVERYTHING)  # that is found by UNSAID

    def _connect(self) -> BaseDatabaseWrapper:
        new = connections.create_connection(DEFAULT_DB_ALIAS)
        self._version = _rows(new, "PRAGMA data_version")
        ((self._step,),) = _rows(new, "SELECT coalesce(max(id), 0) FROM conversations_step")
        self._drafts: frozenset[tuple[Any, ...]] = frozenset()
        self._unsaid = _rows(new, UNSAID)
        self._changed_conversations(new)
        return new

    def _next(self, connection: BaseDatabaseWrapper, until: float) -> ChangeNotice | None:
        while True:
            changed, everything = self._take_hinted(), False
            if (version := _rows(connection, "PRAGMA data_version")) != self._version:
                self._version = version  # before reading: a commit meanwhile changes the counter again
                unsaid, self._unsaid = self._unsaid, _rows(connection, UNSAID)
                changed, everything = changed | self._changed_conversations(connection), unsaid != self._unsaid
            if changed or everything:
                return ChangeNotice(changed, everything)
            if (left := until - time.monotonic()) <= 0:
                return None
            time.sleep(min(POLL_SECONDS, left))

    def _changed_conversations(self, connection: BaseDatabaseWrapper) -> frozenset[int]:
        """Return the conversations with steps that are new since the last call, or with changed drafts."""
        new = "SELECT conversation_id, max(id) FROM conversations_step WHERE id > %s GROUP BY conversation_id"
        steps = dict(_rows(connection, new, self._step))
        drafts = frozenset(
            _rows(connection, "SELECT conversation_id, id, fence, attempt, size FROM conversations_draft")
        )
        self._step = max([self._step, *steps.values()])
        drafted = {conversation for conversation, *_ in drafts ^ self._drafts}
        self._drafts = drafts
        return frozenset(steps.keys() | drafted)


def _rows(connection: BaseDatabaseWrapper, sql: str, *values: int) -> list[tuple[Any, ...]]:
    """Return all rows: a statement that is not read to its end keeps its snapshot."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def open_watch() -> Watch:
    """Return a watch on the site's database. It connects at the first wait, in the thread that waits."""
    return PostgresWatch() if connection.vendor == "postgresql" else SQLiteWatch()
