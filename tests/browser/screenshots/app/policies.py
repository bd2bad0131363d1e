"""A program of the company: it looks, asks an agent, orders with a person's approval, and says what came of it."""

from pydantic import BaseModel

from agents import Action, Context, Step, ToolError, policy

MISSING = "Sum up what is missing on the shelves."
"""What the agent within it is asked."""


class Restock(BaseModel):
    shop: str
    articles: list[str]
    budget: int


@policy("shop.restock", input=Restock, title="Restock a shop")
async def restock(action: Action, ctx: Context) -> list[Step]:
    """Order what is missing in a shop."""
    await ctx.tool("files.list", path=".")
    missing = await ctx.agent(MISSING, tools=["files.read"])
    command = f"echo ordered {' '.join(action.payload['articles'])}"
    try:
        await ctx.tool("shell.run", command=command)
    except ToolError as error:
        return ctx.done({"ordered": [], "why": error.code})
    return ctx.done({"ordered": action.payload["articles"], "cost in EUR": 412.5, "missing": missing})
