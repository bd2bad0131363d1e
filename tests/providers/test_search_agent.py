"""The search agent as its author would write it, against a real wire."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic import BaseModel

from agents.engine import Action, Context, Ledger, PolicyRegistry, Step, invoke_action, loop_wrapper, run
from agents.engine.agent.model import model
from agents.providers.common.server import ModelServer
from agents.providers.responses.protocol import Responses
from tests.wire.script import Call, Reply
from tests.wire.server import WireServer


class Query(BaseModel):
    """What to look for."""

    query: str


@pytest.fixture
async def wire() -> AsyncIterator[WireServer]:
    """A server whose model searches once, then answers."""
    with WireServer([Reply(calls=(Call("search", {"query": "capital of France"}),)), Reply(text="Paris.")]) as server:
        yield server


async def search_agent(wire: WireServer, ledger: Ledger = Ledger()) -> Ledger:  # noqa: B008 - frozen
    provider = Responses(ModelServer("key", wire.url, models={"normal": "m"}))
    registry = PolicyRegistry()
    registry.register("model")(model(provider))

    @registry.register("search", description="Search the web.", input=Query)
    async def search(action: Action, ctx: Context) -> list[Step]:
        return [Step("search", "action_result", {"output": "Paris is the capital of France."})]

    @registry.register("search_agent")
    async def answer(action: Action, ctx: Context) -> list[Step]:
        question = Ledger((Step("user", "text", {"text": action.payload["text"]}),))
        return await ctx.call(
            Action("model", {"ledger": question}, frozenset({"search"})), [loop_wrapper(5), invoke_action()]
        )

    try:
        return await run("search_agent", {"text": "What is the capital of France?"}, registry, ledger)
    finally:
        await provider.aclose()


async def test_the_search_agent_answers(wire: WireServer) -> None:
    """Question, search call, result, answer; the loop stops because no call is left (S128)."""
    ledger = await search_agent(wire)

    assert [step.payload["text"] for step in ledger if step.type == "text"] == ["Paris."]
    calls = [step.payload["policy"] for step in ledger if step.type == "action_call"]
    assert calls == ["search_agent", "model", "model", "search", "model"]
    assert len(wire.requests) == 2
    second = wire.requests[1].body["input"]
    assert [item.get("type") for item in second] == [None, "function_call", "function_call_output"]
    assert second[-1]["output"] == "Paris is the capital of France."


async def test_running_it_again_from_its_ledger_asks_nobody(wire: WireServer) -> None:
    """Every call has its result: the ledger stays as it is (S118, S120)."""
    ledger = await search_agent(wire)
    again = await search_agent(wire, ledger)

    assert list(again) == list(ledger)
    assert len(wire.requests) == 2
