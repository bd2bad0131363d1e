"""The drain: one event loop that runs many prompts concurrently, until told to stop.

Most of the time is spent waiting for models, so one process can run hundreds of prompts. A host has several drains, so
that all its cores work.

All database work of the loop goes through one thread and one connection. Two more threads, each with its own, look for
work and renew the leases; another one hears of commits, so that work is found within milliseconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from django.conf import settings
from django.db import Error, connection, connections

from agents import discovery, registry
from agents.engine.errors import Cancelled, Draining
from agents.engine.interfaces.app_services import AppServices
from conversations.database import erasable_cache
from conversations.database.busy import is_locked
from conversations.database.crashpoints import crashpoint
from conversations.database.disk import report_if_full
from conversations.database.plans import close_if_outdated, keep_plans
from conversations.ledger.claims import Claim, Share, claim, claimable
from conversations.ledger.group_commit import GroupCommit
from conversations.prompts import killswitch
from conversations.worker import hosts
from conversations.worker.drafts import Drafts
from conversations.worker.garbage import collect_seldom
from conversations.worker.kept import Kept
from conversations.worker.leases import LeaseKeeper
from conversations.worker.processes import this_process
from conversations.worker.runner import Runner
from conversations.worker.stops import StopReader, StopRequests
from conversations.worker.watching import CommitListener

logger = logging.getLogger(__name__)
T = TypeVar("T")

LOOK_SECONDS = 1.0
"""The longest time between two looks for work and for what is to stop, in case of a commit that was not heard of."""
APART_SECONDS = 0.01
"""The shortest time between two looks: on a busy site turns begin and end all the time."""
LOOKING_MOST = 0.1
"""The part of the time that looking takes at most, however many turns wait. One slow look alone delays nothing: the
database was busy for a moment, and a decision may just have been made.
"""
OTHERS_SECONDS = 1.0
"""How long a prompt of another drain waits before this one takes it: that drain may be full, busy, or gone."""
TICK_SECONDS = 1.0
"""Time between two signs that the loop is alive."""
CLOSE_SECONDS = 1.0
"""How long what is left on a loop may take to end: tools were told to stop before, and had time for it."""


class DrainLoop:
    """The event loop that claims and runs this process's prompts, as the host's drain with this number."""

    def __init__(self, host: str, number: int = 0) -> None:
        self.host, self.token = host, hosts.new_token()
        self.worker = hosts.worker_name(host, this_process())
        self.stopping = False
        self._ran = 0
        self.runners: dict[Claim, Runner] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._share, self._others = Share(number, settings.AGENTSITE_DRAINS), frozenset[int]()
        self._others_at = -math.inf  # when the claimable prompts of other drains were looked for
        self._look_at = -math.inf  # the next look, at the earliest
        self._look_took = 0.0  # seconds
        self._database = ThreadPoolExecutor(max_workers=1, thread_name_prefix="database")
        self._reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="looks")
        self._stops = StopReader(host, self.token)
        self._drafts = Drafts(self.write)
        self._kept, self._commit = Kept(), GroupCommit(self.write)
        self._of_apps = AppServices(discovery.installed().services)
        self._leases = LeaseKeeper(self._on_lost, partial(hosts.keep_drain, host, self.token))

    async def __call__(self) -> int:
        """Run prompts until the stop mark; return how many were run."""
        self._loop, self._due = asyncio.get_running_loop(), asyncio.Event()
        work = (self._tick(), self._drafts.keep_writing(), self._keep_forgetting())
        beside = [asyncio.create_task(each) for each in work]
        try:
            with self._leases, CommitListener(self._on_commit):
                await self._work()
                await self._finish()
        finally:
            for task in beside:
                task.cancel()
            await self._of_apps.aclose()
            await self.read(connections.close_all)
            await self.write(self._release)
            self._reader.shutdown()
            self._database.shutdown()
        return self._ran

    def stop(self) -> None:
        """Claim nothing more, and end when what runs has come to an end or to a point where another can go on."""
        self.stopping = True
        self._due.set()

    async def write(self, function: Callable[..., T], *args: Any) -> T:
        """Run a function in the thread that owns the connection."""
        return await asyncio.get_running_loop().run_in_executor(self._database, _with_connection, function, *args)

    async def read(self, function: Callable[..., T], *args: Any) -> T:
        """Run a function that only reads in a thread of its own, so that no record waits for it."""
        return await asyncio.get_running_loop().run_in_executor(self._reader, _with_connection, function, *args)

    async def _tick(self) -> None:
        """Show that the loop is alive, however long the database takes to answer `_look`."""
        while True:
            self._leases.tick()
            await asyncio.sleep(TICK_SECONDS)

    async def _keep_forgetting(self) -> None:
        """Forget what others erase, also while no turn needs it."""
        while True:
            await asyncio.sleep(erasable_cache.LOOK_SECONDS)
            try:
                await self.read(erasable_cache.empty_if_removed)
            except Error:
                logger.warning("cannot look at what was erased; trying again", exc_info=True)

    async def _work(self) -> None:
        while not self.stopping:
            await self._look()
            await self._wait()

    async def _look(self) -> None:
        """Stop what was stopped, and claim prompts as far as there is room."""
        try:
            found, tried = await self._found(), set[int]()
            while found and not self.stopping:
                tried.add(prompt := found.pop(0))
                taken = await self._take(prompt)
                if not taken or (self._due.is_set() and self._pause() <= 0):  # one refused suspect: the others too
                    found = [prompt for prompt in await self._found() if prompt not in tried]
        except Error as error:
            if not report_if_full(error):
                logger.warning("the database does not answer; looking again", exc_info=True)
            self._look_at = time.monotonic() + LOOK_SECONDS  # however much others commit meanwhile

    async def _found(self) -> list[int]:
        """Stop what was stopped; then return the prompts to claim."""
        self._due.clear()
        seen, found = await self.read(self._see, list(self.runners))
        await self._obey(seen)
        return found

    def _see(self, held: list[Claim]) -> tuple[StopRequests, list[int]]:
        """Return what is to stop, and what can be claimed; note when to look again."""
        began = time.monotonic()
        stops = self._stops(held)
        room = settings.AGENTSITE_HOLD_PROMPTS - len(held)
        found = self._claimable(room) if room > 0 and not stops.stopping else []
        ended = time.monotonic()
        took, self._look_took = min(ended - began, self._look_took), ended - began
        self._look_at = ended + max(APART_SECONDS, took * (1 / LOOKING_MOST - 1))
        return stops, found

    def _pause(self) -> float:
        """Return the seconds until the next look is due, if there is a reason for one; below 0 if it is overdue."""
        return min(self._look_at - time.monotonic(), LOOK_SECONDS)

    def _claimable(self, room: int) -> list[int]:
        """Return claimable prompts of this drain; now and then, look also for those that other drains leave."""
        if self._share.drains > 1 and time.monotonic() - self._others_at >= OTHERS_SECONDS:
            self._others_at, before = time.monotonic(), self._others
            found = claimable(room, self.worker)
            self._others = frozenset(prompt for prompt in found if not self._share.has(prompt))
            self._share = replace(self._share, besides=before & self._others)
        return claimable(room, self.worker, self._share)

    async def _obey(self, seen: StopRequests) -> None:
        """Stop the turns that were stopped: in memory first, which no failing or slow write can delay."""
        self.stopping = self.stopping or seen.stopping
        for held, runner in self.runners.items():
            if seen.switch:
                runner.kill(seen.switch)
            elif held.prompt in seen.cancelled:
                runner.stop(Cancelled())
        if seen.changes is not None and seen.changes != self._kept.count:
            await self.write(self._kept.see, seen.changes)
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
            new = await self.write(claim, prompt, self.worker, settings.AGENTSITE_LEASE_SECONDS)
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
            kept=self._kept,
            commit=self._commit,
        )
        self._leases.hold(new)
        task = asyncio.create_task(runner())
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, new))

    def _ended(self, ended: Claim, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        del self.runners[ended]
        self._leases.drop(ended)
        self._due.set()  # there is room for another

    async def _wait(self) -> None:
        """Wait until the next look is due: something was committed, or a prompt is done, or it is long ago."""
        await asyncio.sleep(self._pause())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await self._due.wait()

    def _on_commit(self) -> None:
        self._loop.call_soon_threadsafe(self._due.set)  # the listener has a thread of its own

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


def _with_connection(function: Callable[..., T], *args: Any) -> T:
    """Call the function. A broken connection is closed, so that the next call opens another."""
    try:
        return function(*args)
    except Error as error:
        close_if_outdated(error)
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


def drain(number: int = 0) -> int:
    """Be this host's drain with this number until told to stop; return how many prompts were run.

    0 at once if another process has the number, or the host is to have fewer drains by now: it was asked for before.
    """
    if number >= settings.AGENTSITE_DRAINS:
        return 0
    drain = DrainLoop(hosts.this_host(), number)
    if not hosts.take_drain(drain.host, number, drain.token, settings.AGENTSITE_LEASE_SECONDS):
        return 0
    connection.close()  # the loop's threads make their own
    keep_plans()
    collect_seldom()
    return _run(drain())
