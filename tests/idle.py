"""A drain that ends when there is nothing left to do. The product's stays until it is told to stop."""

from __future__ import annotations

import asyncio
import time

from django.conf import settings
from django.db import Error, connection

from conversations.ledger.claims import claimable
from conversations.worker import drain as drains
from conversations.worker import hosts
from conversations.worker.drain import DrainLoop

LOOK_SECONDS = 0.02
QUIET_SECONDS = 1.0
"""A drain that has held nothing for so long ends, too: what could be claimed cannot, e.g. because it is locked."""


def new_drain(host: str = "test", number: int = 0) -> DrainLoop:
    """Return a drain that has this number of the host."""
    drain = DrainLoop(host, number)
    if not hosts.take_drain(drain.host, number, drain.token, settings.AGENTSITE_LEASE_SECONDS):
        raise RuntimeError(f"Another drain is running on {host}.")
    return drain


async def until_idle(drain: DrainLoop, quiet_seconds: float = QUIET_SECONDS) -> int:
    """Run it until there is nothing to do; return how many prompts it ran."""
    stopping = asyncio.create_task(_stop_when_idle(drain, quiet_seconds))
    try:
        return await drain()
    finally:
        stopping.cancel()


def drain_until_idle() -> int:
    """Be the first drain of this host until there is nothing to do, like the task; 0 if another process is it."""
    drain = DrainLoop(hosts.this_host())
    if not hosts.take_drain(drain.host, 0, drain.token, settings.AGENTSITE_LEASE_SECONDS):
        return 0
    connection.close()
    return drains._run(until_idle(drain))


async def _stop_when_idle(drain: DrainLoop, quiet_seconds: float) -> None:
    held_at = time.monotonic()
    while not drain.stopping:
        await asyncio.sleep(LOOK_SECONDS)
        left = await _work_is_left(drain)
        if drain.runners:
            held_at = time.monotonic()
        elif not left or time.monotonic() - held_at > quiet_seconds:
            drain.stop()


async def _work_is_left(drain: DrainLoop) -> bool:
    """Ask in the thread that claims: what it has claimed by then is among the runners."""
    try:
        return bool(await drain.write(claimable, 1))
    except Error:
        return True
