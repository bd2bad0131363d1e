"""A call that began, and whose end nobody saw: nothing runs twice by itself."""

import asyncio
import threading

import pytest

from agents.engine.ledger import Ledger
from agents.engine.limits import Limits
from agents.engine.provider import Answer
from agents.engine.tools import Risk, ToolCall, tool
from agents.engine.view import View
from tests.engine.cast import Name, World, site
from tests.engine.journals import Crash, CrashingJournal, CrashPoint
from tests.engine.support import Site, call, carry_on, decide, lines, open_gates, results_in, says

REPORT = [says("", call("report.write", name="q"), call("fx.read", a=1)), says("Done.")]
TOUCH = [says("", call("touch", name="x")), says("Done.")]


async def crashed(world: World, script: list[Answer], n: int) -> Ledger:
    """The ledger of a turn that died before its n-th record."""
    journal = CrashingJournal(crash=CrashPoint(n))
    with pytest.raises(Crash):
        await carry_on(site(script, world.tools())[0], journal=journal)
    return journal.ledger


async def test_an_interrupted_call_asks_its_owner(world: World) -> None:
    """A start without a result, not idempotent: a card, and nothing after it runs (R15)."""
    ledger = await crashed(world, REPORT, 3)
    assert lines(ledger)[-1] == "1/0 action_start"
    assert world.done == [("report.write", "q")]
    registry, _ = site(REPORT, world.tools())
    waiting = await carry_on(registry, ledger)
    assert open_gates(waiting) == ["1/0/card1"]
    card = View(waiting).call("1/0/card1")
    assert card
    assert {k: card.payload["payload"][k] for k in ("ask", "tool", "input")} == {
        "ask": "interrupted",
        "tool": "report.write",
        "input": {"name": "q"},
    }
    assert world.done == [("report.write", "q")]


@pytest.mark.parametrize(
    ("decided", "message"),
    [
        ("it_ran", "It was interrupted before its output was recorded. The owner says it ran."),
        ("it_did_not", "It was interrupted. The owner says it did not run."),
        ("expired", "Nobody answered whether it ran: check before you ask."),
    ],
)
async def test_the_answer_to_the_card_is_what_the_model_reads(world: World, decided: str, message: str) -> None:
    """The honest error, and the turn goes on."""
    registry, provider = site(REPORT, world.tools())
    waiting = await carry_on(registry, await crashed(world, REPORT, 3))
    await carry_on(registry, decide(waiting, "1/0/card1", decided))
    assert world.times["report.write", "q"] == 1
    assert results_in(provider.asked[-1]) == [f"Error (interrupted): {message}", "read 1"]


async def test_run_again_is_an_approval_of_its_own(world: World) -> None:
    """It runs as attempt 2; interrupted again, it asks again."""
    registry, _ = site(REPORT, world.tools())
    waiting = await carry_on(registry, await crashed(world, REPORT, 3))
    again = decide(waiting, "1/0/card1", "run_again")
    final = await carry_on(registry, again)
    assert world.times["report.write", "q"] == 2
    assert [s.payload["attempt"] for s in final if s.path == "1/0" and s.type == "action_start"] == [1, 2]
    journal = CrashingJournal(again, CrashPoint(2))
    with pytest.raises(Crash):
        await carry_on(registry, again, journal=journal)
    assert open_gates(await carry_on(registry, journal.ledger)) == ["1/0/card2"]


async def test_run_again_of_another_digest_runs_nothing(world: World) -> None:
    """A fresh approval binds its exact call as the first one does."""
    registry, _ = site(REPORT, world.tools())
    waiting = await carry_on(registry, await crashed(world, REPORT, 3))
    await carry_on(registry, decide(waiting, "1/0/card1", "run_again", digest="0" * 64))
    assert world.times["report.write", "q"] == 1


async def test_where_nobody_is_there_the_model_is_told(world: World) -> None:
    """Unattended turns get the honest error at once."""
    registry, provider = site(REPORT, world.tools())
    await carry_on(registry, await crashed(world, REPORT, 3), services=Site(unattended=True))
    assert world.times["report.write", "q"] == 1
    assert results_in(provider.asked[-1])[0].startswith("Error (interrupted): Nobody knows whether it ran")


async def test_an_idempotent_tool_runs_again_with_the_same_key(world: World) -> None:
    """And its service sees the same idempotency key for every attempt (R15)."""
    keys: list[tuple[str, int]] = []
    world.at["touch"] = lambda call: keys.append((call.key, call.attempt))
    ledger = await crashed(world, TOUCH, 3)
    await carry_on(site(TOUCH, world.tools())[0], ledger)
    assert world.times["touch", "x"] == 2
    assert [attempt for _, attempt in keys] == [1, 2]
    assert keys[0][0] == keys[1][0] != ""


async def test_a_thread_past_its_time_limit_is_interrupted() -> None:
    """It cannot be killed, so nobody knows: its owner is asked."""
    stuck, ran = threading.Event(), list[str]()

    @tool("slow", risk=Risk.WRITE, approval=False, time_limit=0.01)
    def slow(call: ToolCall[Name]) -> None:
        stuck.wait()
        ran.append(call.input.name)

    try:
        ledger = await carry_on(site([says("", call("slow", name="x")), says("Done.")], [slow])[0])
        assert open_gates(ledger) == ["1/0/card1"]
    finally:
        stuck.set()


async def test_a_coroutine_past_its_time_limit_is_ended() -> None:
    """The model reads that it was stopped."""
    ended: list[str] = []

    @tool("slow", risk=Risk.WRITE, approval=False)
    async def slow(call: ToolCall[Name]) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(call.input.name)

    registry, provider = site([says("", call("slow", name="x")), says("Done.")], [slow])
    await carry_on(registry, limits=Limits(tool_seconds=0.01))
    assert ended == ["x"]
    assert results_in(provider.asked[1]) == ["Error (timeout): Stopped after 0.01 seconds, its limit."]
