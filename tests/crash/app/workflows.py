"""Workflows that do one of everything: side by side, within one another, after a sleep, an answer and an approval."""

from collections.abc import Awaitable
from typing import Any

from agents import ToolError
from agents.engine.ledger import JSON
from tests.crash.app.tools import Name
from workflows import Flow, workflow


@workflow("fx.part", title="Do a part")
async def part(flow: Flow[Name]) -> None:
    """Do what must not be done twice, with a person's approval."""
    await _safely(flow.tool("fx.count", name=flow.input.name))


@workflow("fx.everything", title="Do everything")
async def everything(flow: Flow[Name]) -> JSON:
    """Read, do what must not be done twice and ask, side by side; then a workflow, a sleep, and another such tool."""
    name = flow.input.name
    flow.progress(0, 2, "Began")
    beside = await flow.gather(
        flow.tool("fx.read", a=1),
        _safely(flow.tool("fx.once", name=name)),
        flow.ask("Which one?", choices=["this", "that"]),
    )
    await flow.workflow("fx.part", name=name)
    await flow.sleep(seconds=0.3)
    await _safely(flow.tool("fx.count", name=name))
    flow.progress(2, 2, "Done")
    return beside[-1]


@workflow("fx.month", title="Wait for a month")
async def month(flow: Flow[Any]) -> str:
    """Sleep for a month, then do what must not be done twice."""
    await flow.sleep(seconds=30 * 86_400)
    return str(await flow.tool("fx.once", name="a"))


@workflow("fx.question", title="Ask, then do")
async def question(flow: Flow[Any]) -> str:
    """Ask a question, then do what must not be done twice."""
    named = await flow.ask("Which one?")
    return str(await flow.tool("fx.once", name=named))


@workflow("fx.fails", title="Fail")
async def fails(flow: Flow[Any]) -> None:
    """Raise an error that nobody expects."""
    raise LookupError("There is nothing here.")


async def _safely(call: Awaitable[JSON]) -> JSON:
    """What came of a call, whatever it was."""
    try:
        return await call
    except ToolError as error:
        return error.code


@workflow("fx.line", title="Do a line")
async def line(flow: Flow[Name]) -> str:
    """Do what must not be done twice, once."""
    await _safely(flow.tool("fx.once", name=flow.input.name))
    return flow.input.name
