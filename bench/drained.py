"""A drain in this process that runs what is queued, with the time that its two threads take."""

from __future__ import annotations

import asyncio
import cProfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bench import support

DATABASE_THREAD = "database"
"""How the name of the thread begins that has the drain's connection."""


def drained(
    turns: int, loop: cProfile.Profile | None = None, database: cProfile.Profile | None = None
) -> dict[str, float]:
    """Run turns until so many were let go, and profile the threads. Returns the seconds from the drain's start to that.

    `wall`, and the CPU seconds of all threads (`cpu`), of the `loop` and of the `database`.
    """
    return asyncio.run(_run(support.new_drain(), turns, loop, database))


async def _run(
    drain: Any, turns: int, loop: cProfile.Profile | None, database: cProfile.Profile | None
) -> dict[str, float]:
    from conversations.prompts.signals import released

    left, ended, running_loop = turns, asyncio.Event(), asyncio.get_running_loop()

    def note(**_: object) -> None:
        nonlocal left
        left -= 1
        if not left:
            running_loop.call_soon_threadsafe(ended.set)

    released.connect(note)
    if database:
        await drain.write(database.enable)
    in_database = await drain.write(time.thread_time)
    wall, cpu, in_loop = time.perf_counter(), time.process_time(), time.thread_time()
    running = asyncio.create_task(drain())
    with _profiled(loop):
        await ended.wait()
    took = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "loop": time.thread_time() - in_loop}
    took["database"] = await drain.write(time.thread_time) - in_database
    if database:
        await drain.write(database.disable)
    released.disconnect(note)
    drain.stop()
    await running
    return took


@contextmanager
def _profiled(profile: cProfile.Profile | None) -> Iterator[None]:
    """This thread, profiled."""
    if profile:
        profile.enable()
    yield
    if profile:
        profile.disable()
