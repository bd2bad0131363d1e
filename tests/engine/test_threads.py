"""Threads for tools that are plain functions: one for each call, up to a limit; a hung one blocks nobody."""

import asyncio
import subprocess
import sys
import threading
from contextvars import ContextVar

import pytest

from agents.engine import threads
from agents.engine.errors import Cancelled
from agents.engine.interfaces.journal import Record
from agents.engine.limits import Limits
from agents.engine.runtime.run import Run
from agents.engine.tools.tool import Risk, Tool, ToolCall, tool
from agents.engine.view import View
from tests.engine.cast import Name, site
from tests.engine.journals import CrashingJournal
from tests.engine.support import Site, call, carry_on, lines, open_gates, results_in, says

SCRIPT = [says("", call("slow", name="x")), says("Done.")]


class Stuck:
    """A function that runs until it is `released`."""

    def __init__(self) -> None:
        self.begun, self.released = threading.Event(), threading.Event()

    def tool(self, **more: float) -> Tool:
        @tool("slow", risk=Risk.WRITE, approval=False, **more)  # type: ignore[arg-type]
        def slow(call: ToolCall[Name]) -> str:
            self.begun.set()
            self.released.wait(timeout=60)
            return "slept"

        return slow


class Watched(CrashingJournal):
    """Tells when something is recorded."""

    def __init__(self) -> None:
        super().__init__()
        self._grown = asyncio.Condition()

    async def record(self, record: Record) -> None:
        async with self._grown:
            await super().record(record)
            self._grown.notify_all()

    async def has(self, line: str) -> None:
        async with asyncio.timeout(30), self._grown:
            await self._grown.wait_for(lambda: line in lines(self.ledger))


@pytest.fixture
def one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "THREADS_MOST", 1)


async def test_a_function_that_hangs_keeps_no_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once it is abandoned, there is a thread for the next call, however many hang."""
    monkeypatch.setattr(threads, "THREADS_MOST", 2)
    busy, hung, free = Stuck(), Stuck(), Stuck()
    free.released.set()
    running = asyncio.ensure_future(carry_on(site(SCRIPT, [busy.tool()])[0]))
    try:
        await asyncio.to_thread(busy.begun.wait, 60)
        for _ in range(3):
            assert open_gates(await carry_on(site(SCRIPT, [hung.tool(time_limit=0.01)])[0])) == ["1/0/card1"]
        registry, provider = site(SCRIPT, [free.tool()])
        await carry_on(registry, limits=Limits(tool_seconds=30))
        assert results_in(provider.asked[1]) == ["slept"]
    finally:
        busy.released.set()
        hung.released.set()
        await running


@pytest.mark.usefixtures("one_place")
async def test_a_call_for_which_no_thread_is_free_in_time_was_not_started() -> None:
    """Nobody is asked what became of it: nothing did. What has the thread is not hurried (R15)."""
    first, second = Stuck(), Stuck()
    registry, provider = site(SCRIPT, [first.tool()])
    running = asyncio.ensure_future(carry_on(registry))
    try:
        await asyncio.to_thread(first.begun.wait, 60)
        waiting, told = site(SCRIPT, [second.tool(time_limit=0.01)])
        ledger = await carry_on(waiting)
    finally:
        first.released.set()
        await running
    why = "Not started: no thread was free within 0.01 seconds, its limit."
    assert results_in(told.asked[1]) == [f"Error (not_started): {why}"]
    assert "1/0 action_start" not in lines(ledger)
    assert not second.begun.is_set()
    assert results_in(provider.asked[1]) == ["slept"]


@pytest.mark.usefixtures("one_place")
async def test_a_call_that_waits_for_a_thread_begins_when_there_is_one() -> None:
    """The request is recorded before it waits, its start after that: until then it has not begun (R15)."""
    first, second = Stuck(), Stuck()
    second.released.set()
    running = asyncio.ensure_future(carry_on(site(SCRIPT, [first.tool()])[0]))
    await asyncio.to_thread(first.begun.wait, 60)
    journal, (registry, provider) = Watched(), site(SCRIPT, [second.tool()])
    waiting = asyncio.ensure_future(carry_on(registry, journal=journal))
    await journal.has("1/0 action_call")
    assert "1/0 action_start" not in lines(journal.ledger)
    first.released.set()
    await asyncio.gather(running, waiting)
    assert results_in(provider.asked[1]) == ["slept"]
    assert "1/0 action_start" in lines(journal.ledger)


@pytest.mark.usefixtures("one_place")
async def test_a_turn_that_is_stopped_waits_for_no_thread() -> None:
    """It ends at once, and says nothing untrue about the call (R9)."""
    first, second, journal = Stuck(), Stuck(), Watched()
    running = asyncio.ensure_future(carry_on(site(SCRIPT, [first.tool()])[0]))
    try:
        await asyncio.to_thread(first.begun.wait, 60)
        run = Run(site(SCRIPT, [second.tool()])[0], journal, Site(), limits=Limits(tool_seconds=60))
        stopped = asyncio.ensure_future(run.run_turn("agent", {"text": "go"}))
        await journal.has("1/0 action_call")
        run.stop(Cancelled())
        await asyncio.wait_for(stopped, 30)
    finally:
        first.released.set()
        await running
    result = View(journal.ledger).result("1/0")
    assert result
    assert result.payload["message"] == "Stopped before it was done."
    assert not second.begun.is_set()


ASKED_BY: ContextVar[str] = ContextVar("asked_by", default="nobody")


async def test_a_function_has_the_context_that_a_coroutine_would_have() -> None:
    """What is set around a turn is there for both kinds of tools."""

    @tool("each", risk=Risk.READ)
    def each(call: ToolCall[Name]) -> str:
        return ASKED_BY.get()

    ASKED_BY.set("ann")
    registry, provider = site([says("", call("each", name="x")), says("Done.")], [each])
    await carry_on(registry)
    assert results_in(provider.asked[1]) == ["ann"]


HANGS = """
import asyncio, threading
from agents.engine import threads

async def turn():
    begun = threading.Event()
    def hang():
        begun.set()
        threading.Event().wait()
    waited = asyncio.ensure_future(threads.in_thread(hang))
    while not begun.is_set():
        await asyncio.sleep(0)
    waited.cancel()
    await asyncio.wait([waited])

asyncio.run(turn())
"""


def test_a_process_ends_whatever_a_function_of_it_still_does() -> None:
    """A worker that is told to stop is not held up by a tool that hangs."""
    assert subprocess.run([sys.executable, "-c", HANGS], timeout=20, check=False).returncode == 0
