"""Where tools that are plain functions run: a thread for each call, and so many calls at a time."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

THREADS_MOST = 16
"""Calls that have a thread at a time. One that is left alone has none any more, so a hung one keeps nobody out."""

_slots: WeakValueDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakValueDictionary()
"""Of each loop, for as long as somebody has one or waits for one."""


def slots() -> asyncio.Semaphore:
    """The slots of this loop: whoever calls `in_thread` has one meanwhile."""
    return _slots.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(THREADS_MOST))


async def in_thread(function: Callable[..., T], *args: object) -> T:
    """What the function comes to in a thread of its own, which begins at once and for which no process's end waits.

    Where nobody waits any more, the thread goes on, and what it comes to is nobody's.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def work() -> None:
        try:
            tell = partial(done.set_result, function(*args))
        except StopIteration:  # a future refuses it, and would never be done
            tell = partial(done.set_exception, RuntimeError("StopIteration"))
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it, whatever it is
            tell = partial(done.set_exception, error)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(_unless_done, done, tell)

    threading.Thread(target=contextvars.copy_context().run, args=[work], name="tool", daemon=True).start()
    return await done


def _unless_done(done: asyncio.Future[T], tell: Callable[[], object]) -> None:
    if not done.done():
        tell()
