"""The database work of sockets and streams: one thread that reads, so that any number of clients holds one connection.

What is written for them has a thread of its own: on SQLite a write may wait for long, and nobody waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from django.db import Error, connections

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class DatabaseThread:
    """Runs functions in its thread, one after the other.

    Its connection is kept while somebody holds it, and else closed when nothing more is asked.
    """

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._wanted = 0  # how many are asking, and holding

    def hold(self) -> None:
        """There are clients: they will ask again."""
        with self._lock:
            self._wanted += 1

    async def release(self) -> None:
        """They have gone."""
        with self._lock:
            self._wanted -= 1
        await self(_nothing)

    async def __call__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What the function returns. It runs to its end even where the caller is cancelled."""
        job = self._submit(partial(function, *args, **kwargs))
        return await asyncio.shield(asyncio.wrap_future(job))

    def run_later(self, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Run it when its turn comes. Nobody waits for it; that it failed is logged."""
        self._submit(partial(function, *args, **kwargs)).add_done_callback(_log_failure)

    def _submit(self, function: Callable[[], T]) -> Future[T]:
        with self._lock:
            self._wanted += 1
        return self._thread.submit(self._run, function)

    def _run(self, function: Callable[[], T]) -> T:
        try:
            return function()
        except Error:
            connections.close_all()  # it may be broken; the next one begins with another
            raise
        finally:
            with self._lock:
                self._wanted -= 1
                unwanted = not self._wanted
            if unwanted:
                connections.close_all()


def _nothing() -> None:
    """Asked for its end: with the last that is asked for, the connection is closed."""


def _log_failure(job: Future[Any]) -> None:
    if error := job.exception():
        logger.warning("something was not noted down: %s", error, exc_info=error)


read = DatabaseThread("push-reader")
write = DatabaseThread("push-writer")
