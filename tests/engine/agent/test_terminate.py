"""A call of which the model says that it is the last one: the turn ends with it, if it works (R12, S49)."""

from __future__ import annotations

import pytest

from agents.engine import Action, Context, Step, run
from agents.engine.interfaces.provider import ToolRequest
from agents.engine.ledger import Ledger, text
from tests.engine.cast import World, site
from tests.engine.journals import CrashingJournal
from tests.engine.support import (
    call,
    carry_on,
    decide,
    digest_of,
    end_of,
    last,
    lines,
    open_gates,
    results_in,
    says,
    shown_of,
)


def ended(ledger: Ledger) -> tuple[str, str]:
    end = end_of(ledger)
    assert end
    return end["state"], end["stop_reason"]


async def test_a_last_call_that_works_ends_the_turn(world: World) -> None:
    """Its result is the end of it, and the model is not asked once more (S49, R12)."""
    registry, provider = site([says("", last("fx.read", a=1)), says("Never said.")], world.tools())
    journal = CrashingJournal()
    ledger = await carry_on(registry, journal=journal)
    assert ended(ledger) == ("completed", "terminate")
    assert lines(ledger)[-2:] == ["1/0 action_result", ". action_result"]
    assert len(provider.asked) == 1
    assert await carry_on(registry, ledger) == ledger
    assert len(provider.asked) == 1


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (last("fx.read", b=1), "Error (invalid_input)"),
        (last("no.such"), "Error (unknown_tool)"),
        (last("touch", name="x"), "Error (exception)"),
    ],
)
async def test_a_last_call_that_fails_is_not_the_last(world: World, asked: ToolRequest, told: str) -> None:
    """The model sees the error, and is asked (R12, S98)."""

    def fails(_: object) -> None:
        raise ValueError("no")

    world.at["touch"] = fails
    registry, provider = site([says("", asked), says("Sorry.")], world.tools())
    ledger = await carry_on(registry)
    assert ended(ledger) == ("completed", "text")
    assert results_in(provider.asked[1])[0].startswith(told)


@pytest.mark.parametrize("decided", ["reject", "expired"])
async def test_a_last_call_that_nobody_approves_is_not_the_last(world: World, decided: str) -> None:
    """Rejected, or nobody answered: the model is asked (R12)."""
    registry, provider = site([says("", last("shell.run", command="ls")), says("As you wish.")], world.tools())
    ledger = await carry_on(registry, decide(await carry_on(registry), "1/0/human", decided))
    assert ended(ledger) == ("completed", "text")
    assert (world.done, len(provider.asked)) == ([], 2)


@pytest.mark.parametrize("edited", [False, True])
async def test_a_last_call_that_is_approved_ends_the_turn_after_the_pause(world: World, edited: bool) -> None:
    """As it was asked for, or as a person changed it (S50, R12)."""
    tools = world.tools()
    shell = next(tool for tool in tools if tool.name == "shell.run")
    registry, provider = site([says("", last("shell.run", command="ls"))], tools)
    waiting = await carry_on(registry)
    new = {"command": "ls -l"}
    said = {"input": new, "digest": digest_of(shell, new), **shown_of(shell, new).recorded} if edited else {}
    ledger = await carry_on(registry, decide(waiting, "1/0/human", **said))
    assert ended(ledger) == ("completed", "terminate")
    assert world.done == [("shell.run", "ls -l" if edited else "ls")]
    assert len(provider.asked) == 1


async def test_the_rest_of_its_batch_is_done_before_the_end(world: World) -> None:
    """Every call of the answer has its result; a gated one behind it is waited for."""
    batch = says("", last("fx.read", a=1), call("shell.run", command="ls"), call("touch", name="x"))
    registry, provider = site([batch], world.tools())
    waiting = await carry_on(registry)
    assert open_gates(waiting) == ["1/1/human"]
    ledger = await carry_on(registry, decide(waiting, "1/1/human"))
    assert ended(ledger) == ("completed", "terminate")
    assert world.done == [("fx.read", 1), ("shell.run", "ls"), ("touch", "x")]
    assert len(provider.asked) == 1


async def test_the_caller_of_a_sub_agent_gets_what_its_last_call_returned(world: World) -> None:
    """Not the words before it."""
    registry, _ = site([says("Let me.", last("fx.read", a=4))], world.tools())

    @registry.register("flow")
    async def flow(action: Action, ctx: Context) -> list[Step]:
        steps = await ctx.call(Action("agent", {"text": "?"}))
        return [text("policy:flow", steps[-1].payload["output"])]

    ledger = await run("flow", {}, registry)
    assert ledger[-2].payload == {"text": "read 4"}
