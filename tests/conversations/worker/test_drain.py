"""The process that drains: what a tool leaves behind keeps it from nothing, nor does who hangs elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import transaction
from pytest_django.fixtures import Settings

from agents import discovery, service
from agents.engine.runtime import run as runtime
from agents.engine.tools.tool import Risk, ToolCall, tool
from conversations.ledger.claims import PLACES, SUSPECT
from conversations.models import Conversation, Prompt, State, Worker
from conversations.verification.stored import verify
from conversations.worker import drain as drains
from conversations.worker import hosts
from tests.agentsite.processes import wait_for
from tests.conversations.recorded import LEASE, Site, at_once, in_this_thread, meddle, pending
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


def test_a_worker_makes_a_service_of_an_app_once_and_closes_it_when_it_stops(ann: User, site: Site) -> None:
    """Two turns and four calls, in threads and on the loop, use the same; the next worker makes its own."""
    done: list[str] = []

    class Mail:
        async def aclose(self) -> None:
            done.append("closed")

    @service("mail")
    def mail() -> object:
        done.append("made")
        return Mail()

    @tool("send", risk=Risk.WRITE, approval=False)
    async def send(call: ToolCall[Name]) -> None:
        assert isinstance(call.services["mail"], Mail)
        done.append("sent")

    @tool("look", risk=Risk.READ)
    def look(call: ToolCall[Name]) -> None:
        assert isinstance(call.services["mail"], Mail)
        done.append("sent")

    found = replace(discovery.installed(), services=(mail,))
    site.monkeypatch.setattr(discovery, "installed", lambda: found)
    site.monkeypatch.setattr(site.world, "tools", lambda: [send, look])
    script = (says("", call("send", name="x"), call("look", name="x")), says("Done."))
    for _ in range(2):
        site.starts(ann, *script)
    assert drains.drain() == 2
    assert done == ["made", *["sent"] * 4, "closed"]
    site.starts(ann, *script)
    assert drains.drain() == 1
    assert done[6:] == ["made", "sent", "sent", "closed"]


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


def drained() -> int:
    """How many turns a drain runs until it finds nothing that it can claim."""
    drain = drains.DrainLoop("test")
    assert hosts.take_drain(drain.host, drain.token, LEASE)
    return async_to_sync(drain)()


@pytest.mark.postgres
def test_who_hangs_in_a_transaction_keeps_no_other_turn_from_being_run(ann: User, site: Site) -> None:
    """The turn that they hold is claimed when they let go, and that is no worker lost."""
    held, other = site.starts(ann, says("Hello.")), site.starts(ann, says("Hello."))
    with transaction.atomic():
        Conversation.objects.select_for_update().get(pk=held.conversation_id)
        assert at_once(drained) == [1]
    other.refresh_from_db()
    held.refresh_from_db()
    assert (other.state, held.state, held.fence) == (State.COMPLETED, State.QUEUED, 0)
    assert drained() == 1
    held.refresh_from_db()
    assert (held.state, held.strikes) == (State.COMPLETED, 0)


def test_a_lease_is_renewed_while_the_next_turn_is_claimed(ann: User, site: Site, settings: Settings) -> None:
    """However long that takes: it would lapse, and count as a worker lost."""
    settings.AGENTSITE_RENEW_SECONDS = 0.02
    first, _ = site.starts(ann, says("Hello.")), site.starts(ann, says("Hello."))
    points: list[str] = []
    leases: list[float] = []

    def renewed() -> bool:
        leases.append(Prompt.objects.get(pk=first.pk).lease_until)
        return leases[-1] > leases[0]

    def passes(point: str) -> None:
        points.append(point)
        if points.count("before_claim") == 2:
            assert at_once(lambda: wait_for(renewed)) == [True]

    site.monkeypatch.setattr(drains, "crashpoint", passes)
    assert drained() == 2
    assert 0 < leases[0] < leases[-1]


@pytest.mark.parametrize("told", [{"stopping": True}, {"drain": "another process"}])
def test_a_drain_that_is_told_to_stop_or_replaced_claims_no_further_turn(
    told: dict[str, Any], ann: User, site: Site
) -> None:
    """It looks for that also between the claims of many."""
    for _ in range(3):
        site.starts(ann, says("Hello."))

    def passes(point: str) -> None:
        if point == "before_claim":
            at_once(lambda: Worker.objects.update(**told))

    site.monkeypatch.setattr(drains, "LOOK_SECONDS", 0)
    site.monkeypatch.setattr(drains, "crashpoint", passes)
    assert drained() == 1


def test_suspects_that_have_to_wait_are_not_tried_one_after_the_other(
    ann: User, site: Site, settings: Settings
) -> None:
    """Of hundreds at one look, one is refused: the others would be for the same reason. No others wait with them."""
    settings.AGENTSITE_PROMPTS_AT_ONCE = 100
    suspects = [site.starts(ann, says("Hello.")) for _ in range(PLACES + 20)]
    meddle("UPDATE conversations_prompt SET strikes = %s, lease_until = 1", [SUSPECT - 1])
    fresh = site.starts(ann, says("Hello."))
    drain, claimed, points = drains.DrainLoop("test"), list[int](), list[str]()
    assert hosts.take_drain(drain.host, drain.token, LEASE)
    site.monkeypatch.setattr(drain, "write", in_this_thread)
    site.monkeypatch.setattr(drain, "_start", lambda claim: claimed.append(claim.prompt))
    site.monkeypatch.setattr(drains, "crashpoint", points.append)
    async_to_sync(drain._look)()
    assert claimed == [*(prompt.pk for prompt in suspects[:PLACES]), fresh.pk]
    assert points.count("before_claim") == PLACES + 2
