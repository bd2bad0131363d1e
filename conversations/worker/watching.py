"""Hearing of work at once, in a thread with its own connection or pipe, so that a drain looks without delay."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing

from conversations.database.commits import open_work_watch

STEP_SECONDS = 0.5
"""How long one wait lasts, and the end of the thread at most."""


class CommitListener:
    """Calls `heard`, in its thread, after each commit that may concern a drain."""

    def __init__(self, heard: Callable[[], object]) -> None:
        self._heard = heard
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="commits", daemon=True)

    def __enter__(self) -> CommitListener:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()

    def _listen(self) -> None:
        with closing(open_work_watch()) as watch:
            while not self._end.is_set():
                notice = watch.wait(STEP_SECONDS)
                if notice and notice.concerns_drains:
                    self._heard()
