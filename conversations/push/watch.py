"""Noticing that other processes wrote steps or drafts, on a connection of its own: the database is the mailbox.

On SQLite a counter that every commit of another connection moves is asked for fifty times a second; on PostgreSQL the
writers notify, and everything is looked at now and then, whether somebody notified or not. Either is only a hint of
where to look: what happened is read from the ledger.

What is done with a conversation as a whole is no step (`conversations.prompts.listing`): PostgreSQL notifies of it
too, on SQLite only the process hears of it in which it was done, which there is the one that serves the pages; of
what others redact or erase it finds the trace. Nor is the kill switch, which concerns every page: SQLite is asked for
it with each commit, PostgreSQL now and then.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass

from django.db import DEFAULT_DB_ALIAS, Error, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from conversations.database.sql import CHANNEL
from conversations.prompts.listing import relisted

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.02
"""Between two looks at SQLite's counter: half of it is what a commit waits on average."""
AGAIN_SECONDS = 1.0
"""Between two attempts to connect."""
ALL_SECONDS = 5.0
"""Between two looks at everything on PostgreSQL: behind a pooler that hands the connection on after each transaction
nobody listens, and pages move that often."""
SWITCH = "SELECT coalesce(max(id), 0) FROM conversations_killswitch WHERE off_at IS NULL"
"""By which row the kill switch is on, 0 for off. It concerns every page, though no step says so."""
ERASED = "SELECT coalesce(max(id), 0) FROM conversations_erasure"
"""The last erasure. What it concerns is not there any more."""


@dataclass(frozen=True)
class ChangeNotice:
    """Where something may have changed: conversations with new steps or other drafts. `everything`: look at all.

    `relisted`: conversations, each with its owner, that stand in the list otherwise, though no step says so.
    """

    conversations: frozenset[int] = frozenset()
    everything: bool = False
    relisted: frozenset[tuple[int, int]] = frozenset()


class Watch:
    """Waits for changes, in one thread. What is committed between two waits is told by the second."""

    def __init__(self) -> None:
        self._connection: BaseDatabaseWrapper | None = None

    def wait(self, seconds: float) -> ChangeNotice | None:
        """What changed since the last call, waited for at most so long; None where nothing did.

        The first one says `everything`, and so does the first after a lost connection. Never raises a database's error.
        """
        try:
            if self._connection is None:
                self._connection = self._connected()
                return ChangeNotice(everything=True)
            return self._next(self._connection, time.monotonic() + seconds)
        except Error:
            logger.warning("the database does not answer the watch; connecting again", exc_info=True)
            self.close()
            time.sleep(min(seconds, AGAIN_SECONDS))
            return None

    def close(self) -> None:
        """Give the connection back, in whatever state it is. A wait after it begins anew."""
        gone, self._connection = self._connection, None
        if gone is not None:
            with suppress(Error):
                gone.close()

    def _connected(self) -> BaseDatabaseWrapper:
        raise NotImplementedError

    def _next(self, connection: BaseDatabaseWrapper, until: float) -> ChangeNotice | None:
        raise NotImplementedError


class PostgresWatch(Watch):
    """Listens. A notification comes once its transaction is committed, and is kept until it is read.

    Every ALL_SECONDS, and where somebody asks for it by an empty notification, it says `everything`.
    """

    def _connected(self) -> BaseDatabaseWrapper:
        new = connections.create_connection(DEFAULT_DB_ALIAS)
        with new.cursor() as cursor:
            cursor.execute(f"LISTEN {CHANNEL}")
        self._all_at = time.monotonic()
        return new

    def _next(self, connection: BaseDatabaseWrapper, until: float) -> ChangeNotice | None:
        all_at = self._all_at + ALL_SECONDS
        seconds = max(min(until, all_at) - time.monotonic(), 0)
        with connection.wrap_database_errors:
            payloads = [each.payload for each in connection.connection.notifies(timeout=seconds, stop_after=1)]
        told = [payload.split(":") for payload in payloads if payload]
        if everything := time.monotonic() >= all_at or "" in payloads:
            self._all_at = time.monotonic()
        found = frozenset(int(pk) for pk, *owner in told if not owner)
        relisted = frozenset((int(pk), int(owner[0])) for pk, *owner in told if owner)
        return ChangeNotice(found, everything, relisted) if told or everything else None


class SQLiteWatch(Watch):
    """Polls the counter of commits, and looks for what they brought."""

    def __init__(self) -> None:
        super().__init__()
        self._heard: deque[tuple[int, int]] = deque()
        relisted.connect(self._hear)  # weakly: it ends with this watch

    def _hear(self, conversation: int, owner: int, **more: object) -> None:
        self._heard.append((conversation, owner))  # in the thread of who changed it

    def _told(self) -> frozenset[tuple[int, int]]:
        return frozenset(self._heard.popleft() for _ in range(len(self._heard)))

    def _connected(self) -> BaseDatabaseWrapper:
        new = connections.create_connection(DEFAULT_DB_ALIAS)
        self._version = _number(new, "PRAGMA data_version")
        self._step = _number(new, "SELECT coalesce(max(id), 0) FROM conversations_step")
        self._redaction = _number(new, "SELECT coalesce(max(id), 0) FROM conversations_redaction")
        self._drafts: frozenset[tuple[int, ...]] = frozenset()
        self._whole = _number(new, SWITCH), _number(new, ERASED)
        self._looked(new)
        return new

    def _next(self, connection: BaseDatabaseWrapper, until: float) -> ChangeNotice | None:
        while True:
            if (version := _number(connection, "PRAGMA data_version")) != self._version:
                self._version = version  # before the look: a commit during it moves the counter again
                whole, self._whole = self._whole, (_number(connection, SWITCH), _number(connection, ERASED))
                changed, everything = self._looked(connection), whole != self._whole
                if changed or everything:
                    return ChangeNotice(changed, everything, self._told())
            if told := self._told():
                return ChangeNotice(relisted=told)
            if (left := until - time.monotonic()) <= 0:
                return None
            time.sleep(min(POLL_SECONDS, left))

    def _looked(self, connection: BaseDatabaseWrapper) -> frozenset[int]:
        """The conversations with steps that are new since the last look, or whose drafts are not the same."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT conversation_id, max(id) FROM conversations_step WHERE id > %s GROUP BY conversation_id",
                [self._step],
            )
            steps = dict(cursor.fetchall())
            cursor.execute("SELECT conversation_id, id, fence, attempt, size FROM conversations_draft")
            drafts = frozenset(cursor.fetchall())
            cursor.execute(
                "SELECT r.id, r.conversation_id, c.owner_id FROM conversations_redaction r"
                " JOIN conversations_conversation c ON c.id = r.conversation_id WHERE r.id > %s",
                [self._redaction],
            )
            for pk, conversation, owner in cursor.fetchall():  # by `manage.py redact`: a process that cannot signal
                self._redaction = max(self._redaction, pk)
                self._heard.append((conversation, owner))
        self._step = max([self._step, *steps.values()])
        drafted = {conversation for conversation, *_ in drafts ^ self._drafts}
        self._drafts = drafts
        return frozenset(steps.keys() | drafted)


def _number(connection: BaseDatabaseWrapper, sql: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        number: int = cursor.fetchall()[0][0]  # all: a statement that is not read to its end keeps its snapshot
    return number


def open_watch() -> Watch:
    """A watch over the site's database. It connects with the first wait, in the thread that waits."""
    return PostgresWatch() if connection.vendor == "postgresql" else SQLiteWatch()
