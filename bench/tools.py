"""The echo tool of the benchmarks: an installed app's `tools.py`, found like any other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pydantic import BaseModel

from agents import Risk, ToolCall, tool


class Echo(BaseModel):
    """What comes back."""

    text: str


async def _nothing() -> None:
    """Between two rounds there is nothing else to do."""


between_rounds: list[Callable[[], Awaitable[None]]] = [_nothing]
"""What a benchmark does while the echo runs: its own loop's round, so that both are measured in turn."""


@tool("bench.echo", risk=Risk.READ, time_limit=600)
async def echo(call: ToolCall[Echo]) -> str:
    """Say it again."""
    await between_rounds[-1]()
    return call.input.text
