"""The drain: one event loop that runs many prompts concurrently, while there is work and until told to stop.

Most of the time is spent waiting for models, so one process can run hundreds of prompts. All database work of the loop
goes through one thread and one connection; another thread, with its own connection, renews the leases.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from django.conf import settings
from django.db import Error, connection

from agents import discovery, registry
from agents.engine.errors import Cancelled, Draining
from agents.engine.interfaces.app_services import AppServices
from conversations.database.busy import brief_waits, is_locked
from conversations.database.crashpoints import crashpoint
from conversations.database.disk import report_if_full
from conversations.ledger.claims import Claim, claim, claimable
from conversations.prompts import killswitch
from conversations.worker import hosts
from conversations.worker.drafts import Drafts
from conversations.worker.leases import LeaseKeeper
from conversations.worker.processes import this_process
from conversations.worker.runner import Runner

logger = logging.getLogger(__name__)
T = TypeVar("T")

LOOK_SECONDS = 0.2
"""Time between polls for work and the stop mark: short beside a model's answer, long beside a query (0.2 ms)."""
IDLE_SECONDS = 1.0
"""How long a drain without work waits for more before it ends, so that a chat's next message finds it awake."""
CLOSE_SECONDS = 1.0
"""How long what is left on a loop may take to end: tools were told to stop before, and had time for it."""


class DrainLoop:
    """The event loop that claims and runs this process's prompts."""

    def __init__(self, host: str) -> None:
        self.host, self.token = host, hosts.new_token()
        self.worker = hosts.worker_name(host, this_process())
        self.stopping = False
        self._ran = 0
        self.runners: dict[Claim, Runner] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._database = ThreadPoolExecutor(max_workers=1, thread_name_prefix="database")
        self._drafts = Drafts(self.write)
        self._of_apps = AppServices(discovery.installed().services)
        self._leases = LeaseKeeper(self._on_lost, partial(hosts.keep_drain, host, self.token))

    async def __call__(self) -> int:
        """Run prompts until there are none left, or until the stop mark; return how many were run."""
        self._loop = asyncio.get_running_loop()
        beside = [asyncio.create_task(self._tick()), asyncio.create_task(self._drafts.keep_writing())]
        try:
            with self._leases:
                await self._work()
                await self._finish()
        finally:
            for task in beside:
                task.cancel()
            await self._of_apps.aclose()
            await self.write(self._release)
            self._database.shutdown()
        return self._ran

    async def write(self, function: Callable[..., T], *args: Any) -> T:
        """Run a function in the thread that owns the connection."""
        return await asyncio.get_running_loop().run_in_executor(self._database, _with_connection, function, *args)

    async def _tick(self) -> None:
        """Show that the loop is alive, however long the database takes to answer `_look`."""
        while True:
            self._leases.tick()
            await asyncio.sleep(LOOK_SECONDS)

    async def _work(self) -> None:
        idle_since = time.monotonic()
        while not self.stopping and (self.runners or time.monotonic() - idle_since < IDLE_SECONDS):
            await self._look()
            if self.runners:
                idle_since = time.monotonic()
            await self._wait()

    async def _look(self) -> None:
        """Stop what was stopped, and claim prompts as far as there is room."""
        try:
            await self._obey_stops()
            found, tried = await self._claimable(), set[int]()
            while found and not self.stopping:
                tried.add(prompt := found.pop(0))
                if not await self._take(prompt):  # if it is a suspect that has to wait, so have the others
                    found = [prompt for prompt in await self._claimable() if prompt not in tried]
                if time.monotonic() - self._stops_read_at > LOOK_SECONDS:
                    await self._obey_stops()
        except Error as error:
            if not report_if_full(error):
                logger.warning("the database does not answer; looking again", exc_info=True)

    async def _claimable(self) -> list[int]:
        room = settings.AGENTSITE_HOLD_PROMPTS - len(self.runners)
        return await self.write(claimable, room, self.worker) if room > 0 else []

    async def _obey_stops(self) -> None:
        """Stop the turns that were stopped: in memory first, which no failing or slow write can delay."""
        self._stops_read_at = time.monotonic()
        seen = await self.write(hosts.stop_requests, self.host, self.token, list(self.runners))
        self.stopping = self.stopping or seen.stopping
        for held, runner in self.runners.items():
            if seen.switch:
                runner.kill(seen.switch)
            elif held.prompt in seen.cancelled:
                runner.stop(Cancelled())
        if seen.switch:
            await self.write(killswitch.enforce)  # the web process that turned it on may have died before doing so

    async def _take(self, prompt: int) -> bool:
        """Claim a prompt and start it before the next one is claimed: from then on its lease is renewed.

        Returns False if that cannot be done now.
        """
        if any(held.prompt == prompt for held in self.runners):
            return False  # its lease lapsed and its runner does not know yet: that one must end before another starts
        crashpoint("before_claim")
        try:
            new = await self.write(_claim_prompt, prompt, self.worker)
        except Error as error:
            if not is_locked(error):
                raise
            logger.warning("this turn is locked by another process; going on with the next", extra={"prompt": prompt})
            return False
        if new:
            self._start(new)
        return bool(new)

    def _start(self, new: Claim) -> None:
        crashpoint("after_claim")
        self._ran += 1
        runner = self.runners[new] = Runner(
            new,
            self.worker,
            self.write,
            self._drafts,
            partial(self._leases.may_begin, new),
            hold=self._leases.hold,
            of_apps=self._of_apps,
        )
        self._leases.hold(new)
        task = asyncio.create_task(runner())
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, new))

    def _ended(self, ended: Claim, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        del self.runners[ended]
        self._leases.drop(ended)

    async def _wait(self) -> None:
        """Wait until the next poll is due, or a prompt is done: then there is room for another."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(LOOK_SECONDS)

    def _on_lost(self, lost: list[Claim]) -> None:
        self._loop.call_soon_threadsafe(self._stop_lost, lost)  # the keeper has a thread of its own

    def _stop_lost(self, lost: list[Claim]) -> None:
        """Stop the runs whose leases were lost: another worker has their prompts, or soon will."""
        for held in lost:
            if runner := self.runners.get(held):
                runner.stop(Draining())

    async def _finish(self) -> None:
        """Let running effects finish, for as long as the setting says; then end them and leave the rest to others."""
        for runner in self.runners.values():
            runner.drain()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=settings.AGENTSITE_STOP_SECONDS)
        for runner in self.runners.values():
            runner.stop(Draining())
        if self._tasks:
            await asyncio.wait(self._tasks)
        with contextlib.suppress(Exception):
            await registry.provider().aclose()

    def _release(self) -> None:
        try:
            hosts.give_up_drain(self.host, self.token)
        except Error:
            logger.warning("the drain's lease could not be released; it will lapse", exc_info=True)
        finally:
            connection.close()


def _claim_prompt(prompt: int, worker: str) -> Claim | None:
    with brief_waits():
        return claim(prompt, worker, settings.AGENTSITE_LEASE_SECONDS)


def _with_connection(function: Callable[..., T], *args: Any) -> T:
    """Call the function. A broken connection is closed, so that the next call opens another."""
    try:
        return function(*args)
    except Error:
        connection.close_if_unusable_or_obsolete()
        raise


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a new loop and return its result, whatever is left on that loop.

    asyncio.run would wait for a tool that ignores its cancellation, and this process would run nothing more.
    """
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.run_until_complete(_end_rest())
        loop.close()  # waits for no thread


async def _end_rest() -> None:
    """End what is left on this loop, tasks and then generators, as far as they do end."""
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    if rest:
        await asyncio.wait(rest, timeout=CLOSE_SECONDS)
    generators = asyncio.create_task(asyncio.get_running_loop().shutdown_asyncgens())
    await asyncio.wait({generators}, timeout=CLOSE_SECONDS)


def drain() -> int:
    """Run this host's prompts; return how many. 0 at once if another process of the host does so."""
    host, ran = hosts.this_host(), 0
    while True:
        drain = DrainLoop(host)
        if not hosts.take_drain(host, drain.token, settings.AGENTSITE_LEASE_SECONDS):
            return ran
        connection.close()  # the loop's thread makes its own
        ran += _run(drain())
        # Work that arrived after the last poll found this drain still there, so its wake-up was used up.
        if drain.stopping or not claimable(1):
            return ran
