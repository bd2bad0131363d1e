"""Hints: tell the web servers of all hosts which conversations to look at, and the drains when to look.

On SQLite drains are told by pipes (`conversations.database.pipes`), and web servers are not: they poll its counter of
commits (`conversations.push.watch`).

A hint is sent after the commit it is about, never within: NOTIFY takes one lock for all commits of a server, so that
one in each transaction limits all writers together (measured with 64 of them: 884 commits a second instead of 2,953).
A thread with a connection of its own sends what has come together, at most once every PAUSE_SECONDS.

A hint may be lost, e.g. with its process: the tailer looks at everything that is followed once a second anyway
(`conversations.push.tailer`), and a drain for all that concerns it (`conversations.worker.drain`).
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from contextlib import suppress
from functools import partial

from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from conversations.database.pipes import hint_pipes

logger = logging.getLogger(__name__)

CHANNEL = "agentsite"
"""The PostgreSQL channel. A payload is a list of conversations, like `12,13`. An empty one means: everything."""
EVERYTHING = ""
WORKERS = "0"
"""The hint of what drains look for, which is no conversation: something to claim or to stop."""
PAUSE_SECONDS = 0.02
"""Minimum interval between two notifications of a process. The first is sent at once, others wait for the next."""
PAYLOAD_MOST = 7_999
"""Maximum length of a payload, in bytes (PostgreSQL's documentation of NOTIFY: shorter than 8,000)."""
WAITING_MOST = 1_000
"""How many hints wait, e.g. while the database is away. More are replaced by EVERYTHING."""
AGAIN_SECONDS = 1.0
"""Seconds between two attempts to connect."""
EXIT_SECONDS = 1.0
"""How long a process that ends waits for its last hints to be sent."""


def hint_changed(conversation: int) -> None:
    """Once the open transaction is committed, tell that a conversation has changed: its steps, drafts or columns."""
    _hint(str(conversation))


def hint_everything() -> None:
    """The same of something that concerns every page."""
    _hint(EVERYTHING)


def hint_workers() -> None:
    """The same of something that drains look for: they are not woken by what changed in a conversation."""
    _hint(WORKERS)


def flush(seconds: float = EXIT_SECONDS) -> None:
    """Send what waits and close the connection, in at most this time. Later hints open it again."""
    _sender.stop(seconds)


def direct_connection() -> BaseDatabaseWrapper:
    """Return a new connection past any pooler, in which NOTIFY, LISTEN and SET do not live. It is not open yet."""
    new = connections.create_connection(DEFAULT_DB_ALIAS)
    new.settings_dict = {**new.settings_dict, **settings.DATABASE_DIRECT}
    return new


def _hint(text: str) -> None:
    if connection.vendor == "postgresql":
        transaction.on_commit(partial(_sender.add, text), robust=True)
    elif text in (WORKERS, EVERYTHING):
        transaction.on_commit(hint_pipes, robust=True)


class Sender:
    """Sends hints, in a thread that starts with the first one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[str, None] = {}
        self._thread: threading.Thread | None = None
        self._over = False

    def add(self, hint: str) -> None:
        """Queue a hint. Never waits for the database."""
        with self._changed:
            self._queue([hint])
            self._over = False
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._run, name="hints", daemon=True)
                thread.start()  # it may be refused
                self._thread = thread
            self._changed.notify()

    def stop(self, seconds: float) -> None:
        """Send what waits, and end the thread, in at most this time."""
        with self._changed:
            self._over, thread = True, self._thread
            self._changed.notify()
        if thread is not None:
            thread.join(seconds)

    def _queue(self, texts: list[str]) -> None:
        self._waiting |= dict.fromkeys(texts)
        if len(self._waiting) > WAITING_MOST:
            self._waiting = {EVERYTHING: None}

    def _run(self) -> None:
        direct = direct_connection()
        sent_at, failed = 0.0, False
        while texts := self._take(sent_at):
            try:
                _notify(direct, payload_of(texts))
                sent_at, failed = time.monotonic(), False
            except Error as error:
                if not failed:
                    logger.warning("hints cannot be sent (%s); pages and drains look once a second", error)
                failed = True
                _close(direct)
                self._put_back(texts)
        _close(direct)

    def _take(self, sent_at: float) -> list[str]:
        """Wait for hints, and until they may be sent. Returns none when the thread is to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._over)
            self._changed.wait_for(lambda: self._over, max(sent_at + PAUSE_SECONDS - time.monotonic(), 0))
            texts, self._waiting = list(self._waiting), {}
            if not texts:
                self._thread = None
            return texts

    def _put_back(self, texts: list[str]) -> None:
        """Queue hints again that could not be sent, and wait a moment; at the end of the process, give them up."""
        with self._changed:
            self._changed.wait_for(lambda: self._over, AGAIN_SECONDS)
            self._queue([] if self._over else texts)


def payload_of(texts: list[str]) -> str:
    """Return the payload for these hints; that of EVERYTHING if they are too long for one."""
    payload = ",".join(texts)
    return EVERYTHING if EVERYTHING in texts or len(payload.encode()) > PAYLOAD_MOST else payload


def _notify(direct: BaseDatabaseWrapper, payload: str) -> None:
    with direct.cursor() as cursor:
        # For this statement only: a pooler may hand the connection on to one that records. A notification that a crash
        # loses was only a hint.
        cursor.execute("SELECT set_config('synchronous_commit', 'off', true), pg_notify(%s, %s)", [CHANNEL, payload])


def _close(direct: BaseDatabaseWrapper) -> None:
    with suppress(Error):  # it may be broken
        direct.close()


_sender = Sender()
# A child has no copy of the thread: it gets a sender, and with its first hint a connection, of its own.
os.register_at_fork(after_in_child=_sender.__init__)  # type: ignore[misc]
atexit.register(flush)
