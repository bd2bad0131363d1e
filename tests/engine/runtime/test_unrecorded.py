"""A journal that does not take a record: no policy may take that for an error of what it called."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from agents.engine import Action, Context, Step, run, text
from agents.engine.errors import Behind, Unrecorded
from agents.engine.interfaces.journal import MemoryJournal, Record
from agents.engine.ledger import action_result
from tests.engine.support import lines


class Away(MemoryJournal):
    """Does not answer to the n-th record, which it may have kept all the same."""

    def __init__(self, n: int, *, kept: bool = False) -> None:
        super().__init__()
        self._left, self._kept = n, kept
        self.failed = asyncio.Event()

    async def record(self, record: Record) -> None:
        recorded = [step for step in self.ledger if step.id >= record.steps[0].id]
        if recorded:
            raise Behind(recorded, recorded[-1].id)
        self._left -= 1
        if self._left or self._kept:
            await super().record(record)
        if not self._left:
            self.failed.set()
            raise OSError("away")


async def step(action: Action, ctx: Context) -> list[Step]:
    return [action_result("step", 1)]


async def catches(ctx: Context) -> None:
    with suppress(Exception):
        await ctx.call(Action("step"))


async def catches_all(ctx: Context) -> None:
    with suppress(BaseException):
        await ctx.call(Action("step"))


async def groups(ctx: Context) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(ctx.call(Action("step"), key="s"))


async def raises_another(ctx: Context) -> None:
    try:
        await ctx.call(Action("step"))
    finally:
        raise KeyError("another")


@pytest.mark.parametrize("policy", [catches, catches_all, groups, raises_another])
@pytest.mark.parametrize("n", [2, 3])  # of the call, and of its result
async def test_a_turn_does_not_go_on_without_it(policy: Callable[[Context], Awaitable[None]], n: int) -> None:
    """Whatever its policy does about it; it goes on from its ledger later."""

    async def root(action: Action, ctx: Context) -> list[Step]:
        await policy(ctx)
        return [text("root", "Done.")]

    journal = Away(n)
    with pytest.raises(Unrecorded, match="away") as raised:
        await run("root", {}, {"root": root, "step": step}, journal=journal)
    assert isinstance(raised.value.error, OSError)
    assert (
        lines(journal.ledger)
        == [". action_call", *(["1 action_call"] if policy is not groups else ["s action_call"])][: n - 1]
    )


@pytest.mark.parametrize("kept", [False, True])
async def test_what_runs_beside_it_ends_and_nothing_is_recorded_twice(kept: bool) -> None:
    """An effect that is under way is not cut off; whether the record was kept is seen by the next one."""
    ran = Counter[str]()

    async def slow(action: Action, ctx: Context) -> list[Step]:
        ran["slow"] += 1
        await journal.failed.wait()
        return [text("slow", "late")]

    async def quick(action: Action, ctx: Context) -> list[Step]:
        ran["quick"] += 1
        return [text("quick", "soon")]

    async def root(action: Action, ctx: Context) -> list[Step]:
        await ctx.gather(ctx.call(Action("slow"), key="s"), ctx.call(Action("quick"), key="q"))
        return [text("root", "Done.")]

    policies: dict[str, Any] = {"root": root, "slow": slow, "quick": quick}
    journal = Away(3, kept=kept)  # the answer of `quick`
    with pytest.raises(Unrecorded):
        await run("root", {}, policies, journal=journal)
    assert lines(journal.ledger)[-2:] == ["s text", "s action_result"]
    ledger = await run("root", {}, policies, journal.ledger)
    assert set(Counter(lines(ledger)).values()) == {1}
    assert lines(ledger)[-1] == ". action_result"
    assert ran == {"slow": 1, "quick": 1}
