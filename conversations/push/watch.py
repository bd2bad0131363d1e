"""The watch of pages: notices which conversations other processes wrote to.

On PostgreSQL hints say so (`conversations.database.commits`). On SQLite what is new is looked for after each commit.

Changes to a conversation as a whole are not steps (`conversations.prompts.listing`): on SQLite they are found by the
number of the last one, which each conversation has; redactions, erasures and the kill switch are found by their rows.
"""

from __future__ import annotations

import time
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from conversations.database.commits import ChangeNotice, PostgresWatch, Watch

POLL_SECONDS = 0.02
"""Interval between two reads of SQLite's counter, which takes 0.005 ms: on average a commit waits for half of it."""
EVERYWHERE = (
    "SELECT (SELECT max(id) FROM conversations_killswitch WHERE off_at IS NULL),"
    " (SELECT max(id) FROM conversations_erasure), (SELECT max(id) FROM conversations_redaction)"
)
"""What may change every page, and no step records: the row by which the kill switch is on; the last erasure, whose
conversation does not exist any more; and the last redaction.
"""

LISTED = "SELECT coalesce(max(unsaid), 0) FROM conversations_conversation"
"""The number of the last change to a conversation that no step records."""


class PagesWatch(Watch):
    """Polls a counter that changes with every commit of another connection, and looks for what they wrote."""

    def _connect(self) -> BaseDatabaseWrapper:
        new = connections.create_connection(DEFAULT_DB_ALIAS)
        new.ensure_connection()
        self._version = _data_version(new)
        ((self._step,),) = _rows(new, "SELECT coalesce(max(id), 0) FROM conversations_step")
        ((self._listed,),) = _rows(new, LISTED)
        self._drafts: frozenset[tuple[Any, ...]] = frozenset()
        self._everywhere = _rows(new, EVERYWHERE)
        self._changed_conversations(new)
        return new

    def _next(self, connection: BaseDatabaseWrapper, until: float) -> ChangeNotice | None:
        while (notice := self._notice(connection)) is None and (left := until - time.monotonic()) > 0:
            time.sleep(min(POLL_SECONDS, left))
        return notice

    def _notice(self, connection: BaseDatabaseWrapper) -> ChangeNotice | None:
        version, self._version = self._version, _data_version(connection)  # first: a commit meanwhile counts again
        if version == self._version:
            return None
        before, self._everywhere = self._everywhere, _rows(connection, EVERYWHERE)
        changed, everything = self._changed_conversations(connection), before != self._everywhere
        return ChangeNotice(changed, everything) if changed or everything else None

    def _changed_conversations(self, connection: BaseDatabaseWrapper) -> frozenset[int]:
        """Return those with new steps, changed drafts, or changes that no step records, since the last call."""
        new = "SELECT conversation_id, max(id) FROM conversations_step WHERE id > %s GROUP BY conversation_id"
        steps = dict(_rows(connection, new, self._step))
        drafts = frozenset(
            _rows(connection, "SELECT conversation_id, id, fence, attempt, size FROM conversations_draft")
        )
        self._step = max([self._step, *steps.values()])
        drafted = {conversation for conversation, *_ in drafts ^ self._drafts}
        self._drafts = drafts
        before = self._listed
        ((self._listed,),) = _rows(connection, LISTED)  # lower than before if the last one was erased
        listed = _rows(connection, "SELECT id FROM conversations_conversation WHERE unsaid > %s", before)
        return frozenset(steps.keys() | drafted | {conversation for (conversation,) in listed})


def _data_version(connection: BaseDatabaseWrapper) -> int:
    with connection.wrap_database_errors:  # without a cursor of Django's, which takes three times as long
        version: int = connection.connection.execute("PRAGMA data_version").fetchone()[0]
    return version


def _rows(connection: BaseDatabaseWrapper, sql: str, *values: int) -> list[tuple[Any, ...]]:
    """Return all rows: a statement that is not read to its end keeps its snapshot."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def open_watch() -> Watch:
    """Return a watch on the site's database. It connects at the first wait, in the thread that waits."""
    return PostgresWatch() if connection.vendor == "postgresql" else PagesWatch()
