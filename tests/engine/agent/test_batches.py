"""Batches: several calls in one answer, some of which wait, without the model noticing."""

from typing import Any

import pytest

from agents.engine.ledger import Ledger
from agents.engine.outputs.change import Change
from agents.engine.outputs.timeline import Outputs
from agents.engine.tools.tool import ToolCall, tool
from tests.engine.cast import Amount, Command, Name, World, site
from tests.engine.execution.test_gates import ONE
from tests.engine.journals import Crash, CrashingJournal, CrashPoint
from tests.engine.support import call, carry_on, decide, end_of, lines, open_gates, says, seen


async def test_a_deferred_call_is_asked_for_when_its_turn_comes() -> None:
    """Chained pauses in one batch: the model is asked once, after the whole batch (S37)."""
    world, strict = World(), [False]

    @tool("late", approval=lambda call: "Now it matters." if strict[0] else None)
    async def late(call: ToolCall[Amount]) -> str:
        world.done.append(("late", call.input.amount))
        return "late"

    world.at["shell.run"] = lambda call: strict.__setitem__(0, True)
    script = [says("", call("shell.run", command="ls"), call("late", amount=1)), says("Done.")]
    registry, provider = site(script, [*world.tools(), late])
    first = await carry_on(registry)
    assert open_gates(first) == ["1/0/human"]
    assert lines(first)[-2:] == ["1/1 action_deferred", ". pause"]
    second = await carry_on(registry, decide(first, "1/0/human"))
    assert world.done == [("shell.run", "ls")]
    assert open_gates(second) == ["1/1/human"]
    assert len(provider.asked) == 1
    final = await carry_on(registry, decide(second, "1/1/human"))
    assert world.done == [("shell.run", "ls"), ("late", 1)]
    assert [len(provider.asked), lines(final).count(". pause")] == [2, 2]


async def test_decisions_may_come_in_any_order_and_work_goes_in_call_order(world: World) -> None:
    """Nothing runs until the last gate is decided; an approved call is never asked for again (R6)."""
    script = [says("", call("shell.run", command="a"), call("shell.run", command="b")), says("Done.")]
    registry, _ = site(script, world.tools())
    ledger = decide(await carry_on(registry), "1/1/human")
    half = await carry_on(registry, ledger)
    assert half == ledger
    assert world.done == []
    final = await carry_on(registry, decide(half, "1/0/human"))
    assert world.done == [("shell.run", "a"), ("shell.run", "b")]
    assert lines(final).count("1/1/human action_call") == 1


async def test_the_model_cannot_tell_that_the_loop_paused() -> None:
    """The same messages with and without a pause (S100)."""
    worlds = World(), World()
    free = [t for t in worlds[0].tools() if t.name != "shell.run"]

    @tool("shell.run", approval=False)
    async def ungated(call: ToolCall[Command]) -> dict[str, Any]:
        return {"stdout": f"did {call.input.command}\n", "stderr": "", "exit": 0, "seconds": 1.23}

    _, unpaused = registry = site(ONE, [*free, ungated])
    await carry_on(registry[0])
    paused_registry, paused = site(ONE, worlds[1].tools())
    await carry_on(paused_registry, decide(await carry_on(paused_registry), "1/0/human"))
    assert [seen(r) for r in paused.asked] == [seen(r) for r in unpaused.asked]
    assert [r.system for r in paused.asked] == [r.system for r in unpaused.asked]


CARDED = [
    says("", call("report.write", name="q"), call("shell.run", command="ls"), call("no.such"), call("fx.read", a=1)),
    says("Done."),
]


async def _interrupted(world: World) -> Ledger:
    """A turn that died while the first call of CARDED was running."""
    journal = CrashingJournal(crash=CrashPoint(3))
    with pytest.raises(Crash):
        await carry_on(site(CARDED, world.tools())[0], journal=journal)
    return journal.ledger


def results(ledger: Ledger) -> dict[str, str]:
    """How each call of the first answer stands."""
    return {entry.path: entry.result.type for entry in Outputs(ledger).entries_of("1")}


async def test_behind_a_call_that_was_interrupted_the_rest_is_asked_or_put_off(world: World) -> None:
    """In one record with the card: no call is shown running that is not, and people see at once all that waits (R6)."""
    began = await _interrupted(world)
    registry, _ = site(CARDED, world.tools())
    journal = CrashingJournal(began)
    waiting = await carry_on(registry, began, journal=journal)
    assert [lines(record.steps) for record in journal.records] == [
        ["1/0/card1 action_call", "1/1/human action_call", "1/2 action_result", "1/3 action_deferred", ". pause"]
    ]
    assert waiting[-1].payload["pending_action_count"] == 2
    assert results(waiting) == {"1/0": "pending", "1/1": "pending", "1/2": "error", "1/3": "deferred"}


async def test_an_answered_card_runs_nothing_while_another_question_is_open(world: World) -> None:
    """Then everything goes in call order, whichever was answered first (R6)."""
    registry, _ = site(CARDED, world.tools())
    waiting = await carry_on(registry, await _interrupted(world))
    half = decide(waiting, "1/0/card1", "run_again")
    world.done.clear()
    assert await carry_on(registry, half) == half
    assert world.done == []
    final = await carry_on(registry, decide(half, "1/1/human"))
    assert world.done == [("report.write", "q"), ("shell.run", "ls"), ("fx.read", 1)]
    assert end_of(final)


async def test_a_crash_while_they_are_asked_asks_nobody_twice(world: World) -> None:
    """Whatever of the questions was recorded, the rest comes with the next run."""
    began = await _interrupted(world)
    registry, _ = site(CARDED, world.tools())
    waiting = await carry_on(registry, began)
    for cut in range(len(began), len(waiting) + 1):
        again = await carry_on(registry, waiting[:cut])
        assert lines(again) == lines(waiting), cut


async def test_behind_a_gate_that_appears_late_the_rest_is_asked_or_put_off() -> None:
    """A rule may depend on what a call before it did: then it is asked about when its turn comes (R6, S37)."""
    world = World()

    @tool("spend", approval=lambda call: "Over the budget." if world.done else None)
    async def spend(call: ToolCall[Amount]) -> None:
        world.done.append(("spend", call.input.amount))

    script = [
        says("", call("touch", name="x"), call("spend", amount=1), call("touch", name="y"), call("spend", amount=2)),
        says("Done."),
    ]
    registry, provider = site(script, [*world.tools(), spend])
    waiting = await carry_on(registry)
    assert world.done == [("touch", "x")]
    assert open_gates(waiting) == ["1/1/human", "1/3/human"]
    assert results(waiting) == {"1/0": "success", "1/1": "pending", "1/2": "deferred", "1/3": "pending"}
    for path in ("1/3/human", "1/1/human"):
        waiting = decide(waiting, path)
    await carry_on(registry, waiting)
    assert world.done == [("touch", "x"), ("spend", 1), ("touch", "y"), ("spend", 2)]
    assert len(provider.asked) == 2


async def test_what_changes_the_same_text_is_not_asked_beside_a_late_gate() -> None:
    """Its diff would show a text that the first call is about to change, so the model must ask for it afterwards."""
    world = World()

    @tool(
        "late",
        approval=lambda call: "Look." if world.done else None,
        change=lambda call: Change(path=call.input.name, before="a", after="b"),
    )
    async def late(call: ToolCall[Name]) -> None:
        world.done.append(("late", call.input.name))

    script = [
        says("", call("touch", name="x"), call("late", name="f"), call("late", name="f"), call("late", name="g")),
        says("Done."),
    ]
    waiting = await carry_on(site(script, [*world.tools(), late])[0])
    assert open_gates(waiting) == ["1/1/human", "1/3/human"]
    assert results(waiting)["1/2"] == "error"
