"""Several calls in one answer, some of which wait; and that the model cannot tell."""

from typing import Any

from agents.engine.tools import ToolCall, tool
from tests.engine.cast import Amount, Command, World, site
from tests.engine.support import call, carry_on, decide, lines, open_gates, says, seen
from tests.engine.test_gates import ONE


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
