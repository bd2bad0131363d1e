"""Threads for tools that are plain functions: one for each call, up to a limit. Services are closed in one too."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

THREADS_MOST = 16
"""The most calls with a thread slot at a time. An abandoned call gives its slot back, so a hung one blocks nobody."""

_slots: WeakValueDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakValueDictionary()
"""The slots of each event loop, for as long as somebody holds one or waits for one."""


def slots() -> asyncio.Semaphore:
    """Return the slots of this event loop. Hold one while calling `in_thread`."""
    return _slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(THREADS_MOST))


async def in_thread(function: Callable[..., T], *args: object) -> T:
    """Call a function in a new daemon thread, which starts at once, and return its result.

    If the caller stops waiting, the thread continues and its result is discarded.
    """
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # from here on it cannot be cancelled, whoever stops waiting

    def work() -> None:
        try:
            done.set_result(function(*args))
        except StopIteration:  # asyncio's futures reject it, and would never be done
            done.set_exception(RuntimeError("StopIteration"))
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it, whatever it is
            done.set_exception(error)

    threading.Thread(target=contextvars.copy_context().run, args=[work], name="tool", daemon=True).start()
    return await asyncio.wrap_future(done)
