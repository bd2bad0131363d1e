"""Django's backend for SQLite, with a shorter wait for the write lock.

While another connection has the lock, SQLite pauses longer and longer between two attempts, up to a tenth of a second,
and others overtake it: with two drains and a web server writing all the time, one drain spent two fifths of its time
waiting, once 0.9 s, for a lock that is held for some milliseconds. Here the pauses stay short.
"""

from __future__ import annotations

import sqlite3
import time
from typing import Any

from django.db.backends.sqlite3 import base

SHORTEST_PAUSE, LONGEST_PAUSE = 0.0003, 0.005
"""Seconds between two attempts: a tenth of what was waited before, within these limits."""
TAKES_LOCK = ("BEGIN", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH")
"""How statements begin that may take the lock, if no transaction has it."""


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to SQLite. It waits for the write lock for as long as its option `timeout` says."""

    def create_cursor(self, name: str | None = None) -> Cursor:
        """Return a new cursor."""
        cursor: Cursor = self.connection.cursor(factory=Cursor)
        return cursor


class Cursor(base.SQLiteCursorWrapper):
    """Django's cursor for SQLite, which tries again at short intervals while others have the write lock."""

    def execute(self, query: str, params: Any = None) -> Any:
        """Execute a statement. Raises sqlite3.OperationalError if others had the lock all the time."""
        if self.connection.in_transaction or not query.startswith(TAKES_LOCK):
            return super().execute(query, params)
        began, [[patience]] = time.monotonic(), self.connection.execute("PRAGMA busy_timeout")
        self.connection.execute("PRAGMA busy_timeout = 0")  # SQLite says at once that others have the lock
        try:
            while True:
                try:
                    return super().execute(query, params)
                except sqlite3.OperationalError as error:
                    waited = time.monotonic() - began
                    if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or waited * 1000 >= patience:
                        raise
                time.sleep(min(max(waited / 10, SHORTEST_PAUSE), LONGEST_PAUSE))
        finally:
            self.connection.execute(f"PRAGMA busy_timeout = {patience}")
