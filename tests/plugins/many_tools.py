"""Many tools, for what happens when there is no room for all of them."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field

from agents.engine.limits import BYTES_A_TOKEN
from agents.engine.tools.category import Category
from agents.engine.tools.tool import Risk, Tool, ToolCall, tool
from agents.plugins.tools.fitting import forms

GARDEN, KITCHEN = Category("garden", "Garden", order=2), Category("kitchen", "Kitchen", order=1)
LONG = "{}. It takes its time.\n\n" + "What else is to be said of it is said here. " * 6


class Thing(BaseModel):
    """What a tool is used on."""

    thing: str = Field(description="What it is done to.")


def made(name: str, does: str = "", *, category: Category | None = None, priority: int = 0, gate: bool = False) -> Tool:
    """A tool that answers with its name. Its description can be shortened twice."""

    async def run(call: ToolCall[Thing]) -> str:
        return f"{name} did {call.input.thing}"

    run.__doc__ = LONG.format(does or f"Do {name}")
    risk = Risk.WRITE if gate else Risk.READ
    return tool(name, risk=risk, category=category, priority=priority)(run)


def numbered(count: int, category: Category | None = None) -> list[Tool]:
    """So many tools, `work.000` first."""
    return [made(f"work.{number:03}", category=category) for number in range(count)]


def tokens(tools: Sequence[Tool], level: int = -1) -> int:
    """The tokens that these take at this level, by default at their shortest."""
    return -(-sum(forms(each)[level].bytes for each in tools) // BYTES_A_TOKEN)
