"""Test tools that act on a world, which counts what is done to it, and agents with these tools."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from agents.engine.agent.model import model
from agents.engine.agent.turn import agent
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.tools.plugin import Plugin, Round
from agents.engine.tools.tool import Risk, Tool, ToolCall, tool
from tests.engine.support import ScriptedProvider


class Number(BaseModel):
    a: int


class Command(BaseModel):
    command: str


class Name(BaseModel):
    name: str


class Amount(BaseModel):
    amount: int


class Counted(BaseModel):
    prepared: int = 0
    added: int = 0


class Counting(Plugin[Counted]):
    """Counts its prepares, and what `count.add` adds."""

    name = "counting"

    async def prepare(self, round: Round) -> None:
        state = round.state(self)
        state.prepared += 1
        round.context.append(f"prepared {state.prepared}, added {state.added}")


@dataclass
class World:
    """What the tools act on. `done` lists every effect in order; `at` has functions called inside effects, by tool."""

    done: list[tuple[str, Any]] = field(default_factory=list)
    at: dict[str, Callable[[ToolCall[Any, Any]], Any]] = field(default_factory=dict)

    @property
    def times(self) -> Counter[tuple[str, Any]]:
        return Counter(self.done)

    async def _do(self, call: ToolCall[Any, Any], what: Any) -> None:
        hook = self.at.get(call.tool)
        if hook:
            waiting = hook(call)
            if asyncio.iscoroutine(waiting):
                await waiting
        self.done.append((call.tool, what))

    def tools(self) -> list[Tool]:
        world = self

        @tool("fx.read", risk=Risk.READ)
        async def read(call: ToolCall[Number]) -> str:
            """Read a number."""
            await world._do(call, call.input.a)
            return f"read {call.input.a}"

        @tool("shell.run")
        async def shell(call: ToolCall[Command]) -> dict[str, Any]:
            """Run a command."""
            await world._do(call, call.input.command)
            return {"stdout": f"did {call.input.command}\n", "stderr": "", "exit": 0, "seconds": 1.23}

        @tool("report.write", risk=Risk.WRITE, approval=False)
        async def report(call: ToolCall[Name]) -> str:
            """Write a report."""
            await world._do(call, call.input.name)
            call.file("a.txt", b"content", media_type="text/plain", summary="S")
            call.widget("table", {"rows": [1]}, "one row")
            return f"wrote {call.input.name}"

        @tool("pay", risk=Risk.HIGH, approval=_over_a_hundred)
        async def pay(call: ToolCall[Amount]) -> str:
            """Pay."""
            await world._do(call, call.input.amount)
            return f"paid {call.input.amount}"

        @tool("touch", risk=Risk.WRITE, approval=False, idempotent=True)
        async def touch(call: ToolCall[Name]) -> str:
            """Touch a file."""
            await world._do(call, call.input.name)
            return f"touched {call.input.name}"

        @tool("count.add", risk=Risk.READ, plugin=Counting)
        async def add(call: ToolCall[Number, Counted]) -> int:
            """Add to the count."""
            await world._do(call, call.input.a)
            call.state.added += call.input.a
            return call.state.added

        return [read, shell, report, pay, touch, add]


async def _over_a_hundred(call: ToolCall[Amount]) -> str | None:
    return f"Pay {call.input.amount}" if call.input.amount > 100 else None


def site(
    script: Any, tools: Sequence[Tool] = (), plugins: Sequence[Plugin[Any]] = (), **options: Any
) -> tuple[PolicyRegistry, ScriptedProvider]:
    """A registry with the policies `agent` and `model`, and the scripted model behind them."""
    provider = script if isinstance(script, ScriptedProvider) else ScriptedProvider(script)
    registry = PolicyRegistry()
    registry.register("model")(model(provider))
    registry.register("agent")(agent(tools=tools, plugins=plugins, **options))
    return registry, provider
