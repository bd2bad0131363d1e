"""Writing again what the disk had no room for, or what somebody else's lock held up: nothing that is known is lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from django.db import Error

from conversations.database.busy import is_locked
from conversations.database.disk import DiskFull, reporting_full

T = TypeVar("T")

FIRST_SECONDS = 1.0
"""The wait before the first retry. Each further wait is twice as long, up to LONGEST_SECONDS."""
LONGEST_SECONDS = 5.0


async def retry_while_held_up(
    write: Callable[..., Awaitable[T]], *args: object, waited: Callable[[float], object]
) -> T:
    """Return `await write(*args)`, retried for as long as the disk is full or a row is locked (PostgreSQL).

    `waited` is called with the seconds waited before each retry. Meanwhile others can write.
    """
    wait = FIRST_SECONDS
    while True:
        try:
            with reporting_full():
                return await write(*args)
        except (DiskFull, Error) as error:
            if not isinstance(error, DiskFull) and not is_locked(error):
                raise
        since = time.monotonic()
        await asyncio.sleep(wait)
        waited(time.monotonic() - since)
        wait = min(wait * 2, LONGEST_SECONDS)
