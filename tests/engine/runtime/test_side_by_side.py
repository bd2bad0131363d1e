"""Calls side by side: each runs once, and a policy that reads its ledger among them reads the same on a replay."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from agents.engine import Action, Context, Ledger, Step, run, text
from agents.engine.errors import Draining
from agents.engine.interfaces.journal import MemoryJournal
from agents.engine.ledger import EMPTY, action_call, action_result
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.runtime.run import Run
from agents.engine.view import View
from tests.engine.journals import Crash, CrashingJournal, CrashPoint
from tests.engine.support import decide, lines


async def step(action: Action, ctx: Context) -> list[Step]:
    return [action_result("step", action.payload.get("n"))]


def played(root: Any, ledger: Ledger = EMPTY, **policies: Any) -> Ledger:
    return asyncio.run(run("root", {}, {"root": root, "step": step, **policies}, ledger))


def call(ctx: Context, key: str) -> Awaitable[list[Step]]:
    return ctx.call(Action("step"), key=key)


def test_branches_read_what_they_were_given_and_the_policy_reads_all_of_it_afterwards() -> None:
    """Live, one branch ends first; replayed, all answers are there at once. Each reads the same both times (S110)."""
    read: dict[str, list[str]] = {}
    other_is_done = asyncio.Event()

    async def slow(ctx: Context) -> None:
        await other_is_done.wait()
        read["slow before"] = lines(ctx.get_ledger())
        await call(ctx, "slow")
        read["slow after"] = lines(ctx.get_ledger())

    async def quick(ctx: Context) -> None:
        await ctx.gather(call(ctx, "quick"), call(ctx, "inner"))
        read["quick"] = lines(ctx.get_ledger())
        other_is_done.set()

    async def root(action: Action, ctx: Context) -> list[Step]:
        await call(ctx, "first")
        await ctx.gather(slow(ctx), quick(ctx))
        read["all"] = lines(ctx.get_ledger())
        raise KeyError("again")

    with pytest.raises(KeyError) as raised:
        played(root)
    live = dict(read)
    first = ["first action_call", "first action_result"]
    branch = ["quick action_call", "quick action_result", "inner action_call", "inner action_result"]
    slowly = ["slow action_call", "slow action_result"]
    assert live == {
        "slow before": first,
        "slow after": [*first, *slowly],
        "quick": [*first, *branch],
        "all": [*first, *branch, *slowly],
    }
    with pytest.raises(KeyError):
        played(root, raised.value.ledger)  # type: ignore[attr-defined]
    assert read == live


@pytest.mark.parametrize(
    "beside",
    [
        lambda ctx: asyncio.gather(call(ctx, "a"), call(ctx, "b")),
        lambda ctx: asyncio.create_task(call(ctx, "a")),  # type: ignore[arg-type]
    ],
)
def test_a_ledger_is_not_read_where_tasks_of_their_own_make_calls(beside: Callable[[Context], Any]) -> None:
    """Which of their answers are there by now would differ on a replay."""

    async def root(action: Action, ctx: Context) -> list[Step]:
        await beside(ctx)
        ctx.get_ledger()
        return []

    with pytest.raises(RuntimeError, match=r"run calls side by side with ctx\.gather"):
        played(root)


def test_a_call_that_was_asked_for_runs_once_however_often_it_is_invoked_at_the_same_time() -> None:
    """Both invocations get its answer (S118)."""
    ran: list[str] = []

    async def asks(action: Action, ctx: Context) -> list[Step]:
        return [action_call("asks", "acts")]

    async def acts(action: Action, ctx: Context) -> list[Step]:
        ran.append(ctx.path)
        await asyncio.sleep(0)
        return [text("acts", "done")]

    async def root(action: Action, ctx: Context) -> list[Step]:
        asked = (await ctx.call(Action("asks")))[0]
        one, two = await ctx.gather(ctx.invoke(asked), ctx.invoke(asked))
        assert one == two
        return one

    played(root, asks=asks, acts=acts)
    assert ran == ["1/0"]


def test_a_call_does_not_wait_for_itself() -> None:
    """It is refused with a sentence; it would wait for ever."""
    kept: list[Step] = []

    async def asks(action: Action, ctx: Context) -> list[Step]:
        return [action_call("asks", "acts")]

    async def acts(action: Action, ctx: Context) -> list[Step]:
        return await ctx.invoke(kept[0])

    async def root(action: Action, ctx: Context) -> list[Step]:
        kept.append((await ctx.call(Action("asks")))[0])
        return await ctx.invoke(kept[0])

    with pytest.raises(ValueError, match="the call at '1/0' would wait for itself"):
        played(root, asks=asks, acts=acts)


# The end


def test_a_turn_ends_with_a_result_of_every_call() -> None:
    """Of those that were asked for and never ran, too: else people saw them running for ever (verify_ledger, R23)."""

    async def asks(action: Action, ctx: Context) -> list[Step]:
        return [action_call("asks", "step"), action_call("asks", "step")]

    async def root(action: Action, ctx: Context) -> list[Step]:
        asked = await ctx.call(Action("asks"))
        await ctx.invoke(asked[0])
        return [action_call("root", "step"), text("root", "Done.")]

    ledger = played(root, asks=asks)
    results = {step.path: step.payload for step in ledger if step.type == "action_result"}
    assert results["1/1"]["code"] == results["0"]["code"] == "not_executed"
    assert ledger[-1].path == ""
    assert View(ledger).open_calls() == []


async def test_a_call_that_nobody_awaited_is_recorded_before_the_end() -> None:
    """Its result came after the turn's own."""
    go_on = asyncio.Event()

    async def slow(action: Action, ctx: Context) -> list[Step]:
        await go_on.wait()
        return [text("slow", "late")]

    async def root(action: Action, ctx: Context) -> list[Step]:
        kept.append(asyncio.create_task(ctx.call(Action("slow"), key="s")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, go_on.set)
        return []

    kept: list[Any] = []
    ledger = await run("root", {}, {"root": root, "slow": slow})
    assert lines(ledger) == [". action_call", "s action_call", "s text", "s action_result", ". action_result"]


@pytest.mark.parametrize("n", range(1, 5))
async def test_what_the_root_says_is_recorded_once_though_a_call_goes_on_beside_it(n: int) -> None:
    """Crashed while that call was recorded, it had said half of its answer, and said it again (S119)."""

    async def slow(action: Action, ctx: Context) -> list[Step]:
        for _ in range(5):
            await asyncio.sleep(0)
        return [text("slow", "late")]

    async def root(action: Action, ctx: Context) -> list[Step]:
        kept.append(asyncio.create_task(ctx.call(Action("slow"), key="s")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return [action_call("root", "step"), text("root", "Done.")]

    kept: list[Any] = []
    policies = {"root": root, "slow": slow, "step": step}
    journal = CrashingJournal(crash=CrashPoint(n, after=True))
    with suppress(Crash):
        await run("root", {}, policies, journal=journal)
    await asyncio.gather(*kept, return_exceptions=True)
    ledger = await run("root", {}, policies, journal.ledger)
    said = [step.payload["text"] for step in ledger if step.type == "text"]
    assert (sorted(said), lines(ledger).count("0 action_call")) == (["Done.", "late"], 1)


async def test_a_call_that_had_not_begun_when_the_turn_ended_is_refused() -> None:
    """Its steps came after the end, and its effect happened when nobody could see it any more."""
    ran: list[str] = []

    async def acts(action: Action, ctx: Context) -> list[Step]:
        ran.append(ctx.path)
        return []

    async def root(action: Action, ctx: Context) -> list[Step]:
        kept.append(asyncio.create_task(ctx.call(Action("acts"), key="s")))
        return []

    kept: list[asyncio.Task[list[Step]]] = []
    journal = MemoryJournal()
    await run("root", {}, {"root": root, "acts": acts}, journal=journal)
    with pytest.raises(RuntimeError, match="the turn has ended"):
        await kept[0]
    assert lines(journal.ledger) == [". action_call", ". action_result"]
    assert ran == []


def leaving(calls: str, first: Callable[[], object] = lambda: None) -> dict[str, Any]:
    """Policies whose root returns while a call goes on, which then does this `first`, and calls another."""
    returned = asyncio.Event()

    async def goes_on(action: Action, ctx: Context) -> list[Step]:
        await returned.wait()
        first()
        return await ctx.call(Action(calls, {"ask": "question", "question": "May I?"}))

    async def root(action: Action, ctx: Context) -> list[Step]:
        left = asyncio.create_task(ctx.call(Action("goes_on"), key="s"))
        left.add_done_callback(lambda done: done.exception())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(returned.set)
        return []

    return {"root": root, "goes_on": goes_on, "step": step}


async def test_a_person_that_a_call_beside_the_root_asks_is_waited_for() -> None:
    """The turn ended, and their question was closed unseen."""
    ledger = await run("root", {}, leaving("human"))
    assert lines(ledger)[-1] == ". pause"
    (gate,) = View(ledger).open_gates()
    ended = await run("root", {}, leaving("human"), decide(ledger, gate.path))
    assert (lines(ended)[-1], View(ended).open_calls()) == (". action_result", [])


async def test_a_worker_that_drains_while_a_call_goes_on_beside_the_root_ends_no_turn() -> None:
    """What that call was about to do is done by the next worker."""
    journal = CrashingJournal()
    draining = Run(PolicyRegistry(leaving("step", lambda: setattr(draining, "draining", True))), journal)
    with pytest.raises(Draining):
        await draining.run_turn("root", {})
    assert ". action_result" not in lines(journal.ledger)
    ended = await run("root", {}, leaving("step"), journal.ledger)
    assert lines(ended)[-3:] == ["s/1 action_result", "s action_result", ". action_result"]
