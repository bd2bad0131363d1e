"""Database threads for sockets and streams: one that reads, so that any number of clients needs one connection.

Writes have a thread of their own: on SQLite a write may take long, and no client should wait for it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from django.db import Error, connections

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


class Write(Protocol):
    """Runs a function in the thread that owns a worker's connection."""

    def __call__(self, function: Callable[..., T], *args: Any) -> Awaitable[T]:
        """Return what the function returns."""
        ...


class DatabaseThread:
    """A thread that runs functions one after the other, on one database connection.

    The connection is kept open while anybody holds the thread, and is otherwise closed when nothing is left to run.
    """

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._wanted = 0  # functions to run, plus holders

    def hold(self) -> None:
        """Keep the connection open until `release`: there are clients, which will ask again."""
        with self._lock:
            self._wanted += 1

    async def release(self) -> None:
        """Undo one `hold`: the clients have gone."""
        with self._lock:
            self._wanted -= 1
        await self(lambda: None)  # the connection is closed after the last function that was asked for

    async def __call__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the function returns. It runs to its end even if the caller is cancelled."""
        job = self._submit(partial(function, *args, **kwargs))
        return await asyncio.shield(asyncio.wrap_future(job))

    def run_later(self, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Queue a function without waiting for it. A failure is logged."""
        self._submit(partial(function, *args, **kwargs)).add_done_callback(_log_failure)

    def _submit(self, function: Callable[[], T]) -> Future[T]:
        with self._lock:
            self._wanted += 1
        return self._thread.submit(self._run, function)

    def _run(self, function: Callable[[], T]) -> T:
        try:
            return function()
        except Error:
            connections.close_all()  # it may be broken; the next function opens another
            raise
        finally:
            with self._lock:
                self._wanted -= 1
                unwanted = not self._wanted
            if unwanted:
                connections.close_all()


def _log_failure(job: Future[Any]) -> None:
    if error := job.exception():
        logger.warning("a background write failed: %s", error, exc_info=error)


read = DatabaseThread("push-reader")
write = DatabaseThread("push-writer")
