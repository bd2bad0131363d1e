"""The tools of the benchmarks, discovered like the `tools.py` of any installed app."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from pydantic import BaseModel

from agents import Risk, ToolCall, tool


class Echo(BaseModel):
    """The input of the tools."""

    text: str


async def _nothing() -> None:
    """Do nothing between two rounds."""


between_rounds: list[Callable[[], Awaitable[None]]] = [_nothing]
"""What a benchmark does while the echo runs: a round of its own loop, so that the two are measured alternately."""


@tool("bench.echo", risk=Risk.READ, time_limit=600)
async def echo(call: ToolCall[Echo]) -> str:
    """Say it again."""
    await between_rounds[-1]()
    return call.input.text


@tool("bench.ask", risk=Risk.DESTRUCTIVE)
async def ask(call: ToolCall[Echo]) -> float:
    """Say when this call started, by the machine's monotonic clock."""
    return time.monotonic()
