"""Answers of a given form, over real HTTP: the same in every protocol, and with the demo model."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from agents import Action, Context, Step, ToolError
from agents.engine.agent.model import model
from agents.engine.agent.turn import agent
from agents.engine.interfaces.provider import Provider
from agents.engine.ledger import Ledger
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.view import View
from agents.providers.demo.rules import answer
from tests.engine.cast import World
from tests.engine.support import carry_on
from tests.providers.support import asks
from tests.wire.script import Call, Reply
from tests.wire.server import WireServer


class Trip(BaseModel):
    """A trip."""

    place: str
    days: int = Field(ge=2)
    by: Literal["train", "bus"]


ROME = {"place": "Rome", "days": 3, "by": "train"}


def site(speaker: Provider, text: str, world: World) -> PolicyRegistry:
    """A policy that asks an agent for a trip."""
    registry = PolicyRegistry()
    registry.register("model")(model(speaker))
    registry.register("agent")(agent(tools=world.tools()))

    @registry.register("plan")
    async def plan(action: Action, ctx: Context) -> list[Step]:
        try:
            return ctx.done(await ctx.agent(text, output=Trip))
        except ToolError as error:
            return ctx.done(error.code)

    return registry


async def planned(registry: PolicyRegistry) -> tuple[Any, Ledger]:
    ledger = await carry_on(registry, policy="plan", payload={})
    result = View(ledger).result("")
    assert result
    return result.value, ledger


async def test_it_is_given_by_a_call(wire: WireServer, speaker: Provider, protocol: str) -> None:
    """Words, a wrong answer and a right one; every request is one that the server accepts."""
    wire.script = [
        Reply("To Rome, by train."),
        asks(protocol, "", Call("final_answer", {"place": "Rome", "days": 1, "by": "train"})),
        asks(protocol, "Here it is.", Call("final_answer", ROME)),
    ]
    value, _ = await planned(site(speaker, "Where to?", World()))
    assert value == ROME
    sent = [request.raw.decode() for request in wire.requests]
    assert len(sent) == 3
    assert "Give your answer by a call of the tool final_answer" in sent[1]
    assert "Enter a number that is 2 or more" in sent[2]


async def test_words_alone_end_it(wire: WireServer, speaker: Provider) -> None:
    wire.script = [Reply("To Rome.")] * 3
    assert (await planned(site(speaker, "Where to?", World())))[0] == "parse_failures"


@pytest.mark.parametrize("text", ["Where to?", 'use fx_read with {"a": 1}'])
async def test_the_demo_model_makes_one_up(wire: WireServer, speaker: Provider, text: str) -> None:
    """After it did what it understood."""
    wire.script = answer
    world = World()
    value, _ = await planned(site(speaker, text, world))
    assert value == {"place": "text", "days": 2, "by": "train"}
    assert world.done == ([("fx.read", 1)] if "use" in text else [])


async def test_the_demo_model_says_what_it_is_told_to(wire: WireServer, speaker: Provider) -> None:
    wire.script = answer
    told = 'use final_answer with {"place": "Oslo", "days": 9, "by": "bus"}'
    assert (await planned(site(speaker, told, World())))[0] == {"place": "Oslo", "days": 9, "by": "bus"}
