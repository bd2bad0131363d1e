"""The process that drains: what a tool leaves behind keeps it from nothing, nor does who hangs elsewhere."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from functools import partial
from typing import NoReturn

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction
from pytest_django.fixtures import Settings

from agents import discovery, service
from agents.engine.runtime import run as runtime
from agents.engine.tools.tool import Risk, ToolCall, tool
from conversations.approvals.gatekeeper import OWNER_GONE
from conversations.ledger.claims import PLACES, SUSPECT, Claim
from conversations.models import Conversation, Drain, Prompt, State, Worker
from conversations.verification.stored import verify
from conversations.worker import drain as drains
from conversations.worker import hosts
from conversations.worker.stops import StopReader
from tests.agentsite.processes import wait_for
from tests.conversations.recorded import Site, at_once, in_this_thread, meddle, pending
from tests.engine.cast import Name
from tests.engine.support import call, says
from tests.idle import drain_until_idle, new_drain, until_idle

pytestmark = pytest.mark.django_db(transaction=True)
WAITED_FOR = 20.0
"""Seconds after which what would go on for ever ends: a drain that waits for it fails its test, and is not stuck."""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    for place, name in ((runtime, "GRACE_SECONDS"), (drains, "CLOSE_SECONDS")):
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
    assert drain_until_idle() == 1
    assert over == []
    (gate,) = pending(waits)
    assert gate.ask == "interrupted"
    assert verify(waits.conversation_id).problems == []
    following = site.starts(ann, says("Hello."))
    assert drain_until_idle() == 1
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
    assert drain_until_idle() == 2
    assert done == ["made", *["sent"] * 4, "closed"]
    site.starts(ann, *script)
    assert drain_until_idle() == 1
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
    assert drain_until_idle() == 1
    prompt.refresh_from_db()
    assert (prompt.state, over) == (State.COMPLETED, ["task", "generator"])


def has_ended(prompt: Prompt) -> bool:
    prompt.refresh_from_db()
    return prompt.ended


def drained() -> int:
    """How many turns a drain runs until it finds nothing that it can claim."""
    return async_to_sync(until_idle)(new_drain())


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


def test_a_number_has_one_drain_however_many_ask_for_it() -> None:
    """The parent asks for it, and so does every message that comes before it is there."""
    taken = at_once(*(partial(hosts.take_drain, "test", 0, str(number), 30) for number in range(5)))
    assert taken.count(True) == 1
    assert taken.count(False) == 4
    assert hosts.take_drain("test", 1, "of another number", 30)
    hosts.give_up_drain("test", str(taken.index(True)))
    assert hosts.take_drain("test", 0, "the next", 30)
    assert hosts.live_drains("test") == {0: "the next", 1: "of another number"}


@pytest.mark.parametrize("told", [lambda: hosts.stop("test"), lambda: Drain.objects.update(token="another process")])
def test_a_drain_that_is_told_to_stop_or_replaced_claims_no_further_turn(
    told: Callable[[], object], ann: User, site: Site
) -> None:
    """It looks for that also between the claims of many."""
    for _ in range(3):
        site.starts(ann, says("Hello."))
    drain = new_drain()

    def passes(point: str) -> None:
        if point == "before_claim":
            at_once(told)
            drain._due.set()

    site.monkeypatch.setattr(drains, "APART_SECONDS", 0)
    site.monkeypatch.setattr(drains, "LOOKING_MOST", 1)
    site.monkeypatch.setattr(drains, "crashpoint", passes)
    assert async_to_sync(until_idle)(drain, quiet_seconds=WAITED_FOR) == 1


def test_suspects_that_have_to_wait_are_not_tried_one_after_the_other(
    ann: User, site: Site, settings: Settings
) -> None:
    """Of hundreds at one look, one is refused: the others would be for the same reason. No others wait with them."""
    settings.AGENTSITE_PROMPTS_AT_ONCE = 100
    suspects = [site.starts(ann, says("Hello.")) for _ in range(PLACES + 20)]
    meddle("UPDATE conversations_prompt SET strikes = %s, lease_until = 1", [SUSPECT - 1])
    fresh = site.starts(ann, says("Hello."))
    drain, claimed, points = new_drain(), list[int](), list[str]()
    drain._due = asyncio.Event()
    site.monkeypatch.setattr(drain, "write", in_this_thread)
    site.monkeypatch.setattr(drain, "read", in_this_thread)
    site.monkeypatch.setattr(drain, "_start", lambda claim: claimed.append(claim.prompt))
    site.monkeypatch.setattr(drains, "crashpoint", points.append)
    async_to_sync(drain._look)()
    assert claimed == [*(prompt.pk for prompt in suspects[:PLACES]), fresh.pk]
    assert points.count("before_claim") == PLACES + 2


def test_a_look_that_failed_is_not_tried_again_with_every_commit(site: Site) -> None:
    """The log would be full of it."""
    drain = new_drain()
    drain._due = asyncio.Event()

    def fails(*_args: object) -> list[int]:
        raise OperationalError("disk I/O error")

    site.monkeypatch.setattr(drain, "read", in_this_thread)
    site.monkeypatch.setattr(drains, "claimable", fails)
    async_to_sync(drain._look)()
    assert drain._pause() > drains.LOOK_SECONDS / 2


def test_a_drain_takes_its_own_turns_at_once_and_those_of_others_after_a_while(
    ann: User, site: Site, settings: Settings
) -> None:
    """The other drain may be full or gone. Nobody takes what the other is about to take."""
    settings.AGENTSITE_DRAINS = 2
    prompts = [site.starts(ann, says("Hello.")) for _ in range(4)]
    own = [prompt.pk for prompt in prompts if prompt.pk % 2]
    claimed: list[tuple[int, float]] = []
    start = drains.DrainLoop._start

    def starts(drain: drains.DrainLoop, new: Claim) -> None:
        claimed.append((new.prompt, time.monotonic()))
        start(drain, new)

    site.monkeypatch.setattr(drains.DrainLoop, "_start", starts)
    began = time.monotonic()
    assert async_to_sync(until_idle)(new_drain(number=1), quiet_seconds=5) == 4
    assert [prompt for prompt, _ in claimed[:2]] == own
    assert min(at - began for prompt, at in claimed if prompt not in own) >= drains.OTHERS_SECONDS


def test_a_turn_is_taken_up_as_soon_as_it_is_committed(ann: User, site: Site) -> None:
    """A drain without work hears of it, and does not wait for its next look."""
    site.monkeypatch.setattr(drains, "LOOK_SECONDS", WAITED_FOR)
    site.starts(ann, says("Hello."))
    drain, following = new_drain(), list[Prompt]()
    began = time.monotonic()

    async def one_after_the_other() -> int:
        running = asyncio.create_task(drain())
        for _ in range(3):
            following.append(await sync_to_async(site.starts)(ann, says("Hello.")))
            await sync_to_async(wait_for)(lambda: has_ended(following[-1]))
        drain.stop()
        return await running

    assert async_to_sync(one_after_the_other)() == 4
    assert time.monotonic() - began < WAITED_FOR


def test_what_people_change_is_heard_of_while_a_turn_says_nothing(ann: User, site: Site) -> None:
    """C11: nothing more is read for somebody who left, though the tool before it ran for long and recorded nothing."""
    drain = new_drain()

    async def leaves(_call: object) -> None:
        before = drain._kept.count
        await sync_to_async(User.objects.filter(pk=ann.pk).update)(is_active=False)
        await sync_to_async(wait_for)(lambda: drain._kept.count != before)

    site.world.at["report.write"] = leaves
    prompt = site.starts(ann, says("", call("report.write", name="q"), call("fx.read", a=1)), says("Done."))
    async_to_sync(until_idle)(drain)
    (refused,) = prompt.steps.filter(path="1/1", type="action_result")
    assert refused.content["message"] == OWNER_GONE
    assert site.world.done == [("report.write", "q")]


def test_a_number_that_the_host_no_longer_has_is_nobodys(settings: Settings) -> None:
    """It was asked for when the host was to have more: it would keep the process that heartbeats need."""
    settings.AGENTSITE_DRAINS = 1
    Worker.objects.create(host=hosts.this_host(), stopping=True)
    assert drains.drain(1) == 0
    assert not Drain.objects.exists()


def test_a_drain_whose_parent_was_killed_ends_though_the_database_is_away(site: Site) -> None:
    """Else it would ask for ever on behalf of nobody."""
    with subprocess.Popen(["true"]) as parent:
        parent.wait()
    site.monkeypatch.setenv(hosts.PARENT, str(parent.pid))

    def away(*_: object) -> NoReturn:
        raise OperationalError("server closed the connection unexpectedly")

    with connection.execute_wrapper(away):
        assert StopReader("test", "token")([]).stopping
