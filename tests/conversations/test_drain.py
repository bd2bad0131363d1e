"""The process that drains: what a tool leaves behind keeps it from nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from django.contrib.auth.models import User

from agents.engine import runtime
from agents.engine.tools import Risk, ToolCall, tool
from conversations.models import State
from conversations.verification.stored import verify
from conversations.worker import drain as drains
from tests.conversations.recorded import Site, pending
from tests.engine.cast import Name
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db(transaction=True)
WAITED_FOR = 20.0
"""Seconds after which what would go on for ever ends: a drain that waits for it fails its test, and is not stuck."""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for place, name in ((runtime, "GRACE_SECONDS"), (drains, "IDLE_SECONDS"), (drains, "CLOSE_SECONDS")):
        monkeypatch.setattr(place, name, 0.05)


async def stubborn(over: list[str]) -> None:
    """Go on, whoever says what."""
    released = asyncio.Event()
    asyncio.get_running_loop().call_later(WAITED_FOR, released.set)
    while not released.is_set():
        try:
            await released.wait()
        except asyncio.CancelledError:
            continue
    over.append("over")


def test_a_tool_that_does_not_end_holds_up_no_drain(ann: User, site: Site) -> None:
    """Its owner is asked what became of it, and the process is there for the next turn."""
    over: list[str] = []

    @tool("slow", risk=Risk.WRITE, approval=False, time_limit=0.05)
    async def slow(call: ToolCall[Name]) -> None:
        await stubborn(over)

    site.monkeypatch.setattr(site.world, "tools", lambda: [slow])
    waits = site.starts(ann, says("", call("slow", name="x")), says("Done."))
    assert drains.drain() == 1
    assert over == []
    (gate,) = pending(waits)
    assert gate.ask == "interrupted"
    assert verify(waits.conversation_id).problems == []
    following = site.starts(ann, says("Hello."))
    assert drains.drain() == 1
    following.refresh_from_db()
    assert (following.state, over) == (State.COMPLETED, [])


def test_what_a_tool_left_on_the_loop_is_told_to_end(ann: User, site: Site) -> None:
    """Tasks and generators that nobody waits for; one that will not end keeps the others from nothing."""
    over: list[str] = []
    left: list[object] = []

    async def told() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            over.append("task")

    async def pieces() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            over.append("generator")

    @tool("leaves", risk=Risk.WRITE, approval=False)
    async def leaves(call: ToolCall[Name]) -> None:
        left.extend([asyncio.ensure_future(told()), asyncio.ensure_future(stubborn(over)), going := pieces()])
        await anext(going)

    site.monkeypatch.setattr(site.world, "tools", lambda: [leaves])
    prompt = site.starts(ann, says("", call("leaves", name="x")), says("Done."))
    assert drains.drain() == 1
    prompt.refresh_from_db()
    assert (prompt.state, over) == (State.COMPLETED, ["task", "generator"])
