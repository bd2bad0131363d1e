"""A program that calls tools of every sort and an agent, and goes on whatever became of them."""

from contextlib import suppress

from agents import Action, Context, Step, ToolError, policy
from tests.crash.app.tools import Name


@policy("fx.plan", input=Name, title="Do it all")
async def plan(action: Action, ctx: Context) -> list[Step]:
    """Read, do what must not be done twice, without and with a person's approval, write, and ask an agent."""
    await ctx.tool("fx.read", a=1)
    for name in ("fx.once", "fx.count", "fx.write"):
        with suppress(ToolError):
            await ctx.tool(name, name=action.payload["name"])
    said = await ctx.agent("Count too.", tools=["fx.count"])
    return ctx.done({"said": said})
