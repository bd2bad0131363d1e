"""Tools called by policies instead of a model: the same rules apply."""

from __future__ import annotations

import pytest

from agents.engine import Action, Context, Ledger, PolicyRegistry, Step, invoke_action, loop_wrapper
from agents.engine.execution.effect import as_policy
from agents.engine.runtime.policy import Decorator
from agents.engine.view import View
from tests.engine.cast import World
from tests.engine.support import carry_on, decide, end_of, open_gates


def registry_of(world: World) -> PolicyRegistry:
    """The tools as policies."""
    registry = PolicyRegistry()
    for tool in world.tools():
        registry.register(tool.name)(as_policy(tool))
    return registry


async def test_a_tool_that_a_policy_calls_waits_for_a_person_too(world: World) -> None:
    """T-04: there is no way to run it without a decision."""
    registry = registry_of(world)

    @registry.register("flow")
    async def flow(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("shell.run", {"command": "ls"}))

    ledger = await carry_on(registry, policy="flow")
    assert (world.done, open_gates(ledger)) == ([], ["1/human"])
    ledger = await carry_on(registry, decide(ledger, "1/human"), policy="flow")
    assert end_of(ledger)
    assert world.done == [("shell.run", "ls")]


@pytest.mark.parametrize("decorators", [[], [loop_wrapper(3)], [loop_wrapper(3), invoke_action()]])
async def test_a_tool_is_given_its_input_and_no_more(decorators: list[Decorator], world: World) -> None:
    """The ledger that a decorator adds is none of it."""
    registry = registry_of(world)

    @registry.register("flow")
    async def flow(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("report.write", action.payload), decorators)

    await carry_on(registry, policy="flow", payload={"name": "q"})
    assert world.done == [("report.write", "q")]


async def test_a_ledger_is_no_tools_input(world: World) -> None:
    """One that its caller adds is refused, and nothing runs."""
    registry = registry_of(world)

    @registry.register("flow")
    async def flow(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("report.write", {"name": "q", "ledger": Ledger()}))

    ledger = await carry_on(registry, policy="flow")
    refused = View(ledger).result("1")
    assert refused
    assert (world.done, refused.payload["code"]) == ([], "invalid_input")
