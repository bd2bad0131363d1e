"""Django's backend for SQLite, but that a transaction asks for the write lock again and again, at short intervals.

SQLite itself asks at intervals that grow to a tenth of a second, while others come and go: with two drains and a web
server that wrote all the time, one of them waited for two fifths of it, and for 0.9 s once, for a lock that is held for
some milliseconds.
"""

from __future__ import annotations

import sqlite3
import time

from django.db import OperationalError
from django.db.backends.sqlite3 import base

SHORTEST_PAUSE, LONGEST_PAUSE = 0.0003, 0.005
"""Seconds between two attempts: a tenth of what was waited before, within these limits."""


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection to SQLite. It waits for the write lock for as long as the option `timeout` says, in seconds."""

    def _start_transaction_under_autocommit(self) -> None:
        patience = float(self.settings_dict["OPTIONS"]["timeout"])
        began = time.monotonic()
        self._let_sqlite_wait(0)
        try:
            while not self._began_transaction(patient=(waited := time.monotonic() - began) < patience):
                time.sleep(min(max(waited / 10, SHORTEST_PAUSE), LONGEST_PAUSE))
        finally:
            self._let_sqlite_wait(patience)

    def _began_transaction(self, *, patient: bool) -> bool:
        """Begin a transaction. If another connection has the lock, return False or, if not `patient`, raise."""
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc] # not in the stubs
        except OperationalError as error:
            code = getattr(error.__cause__, "sqlite_errorcode", None)
            if not patient or code != sqlite3.SQLITE_BUSY:
                raise
            return False
        return True

    def _let_sqlite_wait(self, seconds: float) -> None:
        """Have SQLite wait for so long for locks; with 0, it says at once that they are taken."""
        self.connection.execute(f"PRAGMA busy_timeout = {seconds * 1000:.0f}")
