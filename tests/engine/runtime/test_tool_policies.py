"""Tools called by policies instead of a model: the same rules apply."""

from __future__ import annotations

from agents.engine import Action, Context, Step
from agents.engine.execution.effect import as_policy
from tests.engine.cast import World, site
from tests.engine.support import carry_on, decide, end_of, open_gates


async def test_a_tool_that_a_policy_calls_waits_for_a_person_too() -> None:
    """T-04: there is no way to run it without a decision."""
    world = World()
    registry, _ = site([])
    for tool in world.tools():
        registry.register(tool.name)(as_policy(tool))

    @registry.register("flow")
    async def flow(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("shell.run", {"command": "ls"}))

    ledger = await carry_on(registry, policy="flow")
    assert (world.done, open_gates(ledger)) == ([], ["1/human"])
    ledger = await carry_on(registry, decide(ledger, "1/human"), policy="flow")
    assert end_of(ledger)
    assert world.done == [("shell.run", "ls")]
