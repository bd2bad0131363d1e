"""The demo model in turns in which nobody spoke, or that go on, in every protocol (S4)."""

from __future__ import annotations

from typing import Any

import pytest

from agents.engine.agent.model import model
from agents.engine.agent.turn import agent
from agents.engine.interfaces.provider import Provider
from agents.engine.interfaces.services import PastTurn
from agents.engine.ledger import EMPTY, Ledger
from agents.engine.outputs.kinds import TextOutput, ToolOutput
from agents.engine.outputs.timeline import Outputs
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.tools.tool import Tool, ToolCall, tool
from agents.plugins.files.tools import Folder
from agents.providers.demo.guide import INTRODUCTION
from agents.providers.demo.rules import UNASKED, answer
from tests.engine.support import Site, carry_on
from tests.wire.server import WireServer


class Listing:
    """The tool `files.list` over a folder of one file. It counts its calls."""

    def __init__(self) -> None:
        self.listed = 0

    def tool(self) -> Tool:
        @tool("files.list", approval=False)
        async def listing(call: ToolCall[Folder]) -> str:
            """List the files."""
            self.listed += 1
            return "notes.md"

        return listing


@pytest.fixture
def folder() -> Listing:
    return Listing()


@pytest.fixture
def site(wire: WireServer, speaker: Provider, folder: Listing) -> PolicyRegistry:
    """An agent whose model is the demo; `short` has one round."""
    wire.script = answer
    registry = PolicyRegistry()
    registry.register("model")(model(speaker))
    registry.register("agent")(agent(tools=[folder.tool()]))
    registry.register("short")(agent(tools=[folder.tool()], rounds=1))
    return registry


def texts(ledger: Ledger) -> list[str]:
    return [output.text for output in Outputs(ledger).in_order() if isinstance(output, TextOutput)]


async def after(site: PolicyRegistry, payload: dict[str, Any], *past: PastTurn) -> Ledger:
    return await carry_on(site, EMPTY, payload=payload, services=Site(prompt=len(past) + 1, past=[*past]))


async def test_the_old_request_is_not_done_again(site: PolicyRegistry, folder: Listing) -> None:
    """Nobody asked for anything: neither before, nor in the turn after one in which nobody spoke."""
    first = await after(site, {"text": "list the files"})
    assert folder.listed == 1
    past = [PastTurn(1, "list the files", Outputs(first).in_order())]
    for number in (2, 3):
        silent = await after(site, {}, *past)
        assert texts(silent) == [UNASKED]
        past.append(PastTurn(number, None, Outputs(silent).in_order()))
    assert folder.listed == 1
    again = await after(site, {"text": "list the files"}, *past)
    assert folder.listed == 2
    assert "notes.md" in texts(again)[-1]


async def test_a_conversation_may_begin_so(site: PolicyRegistry, folder: Listing) -> None:
    silent = await after(site, {})
    assert texts(silent) == [f"{INTRODUCTION} {UNASKED}"]
    await after(site, {"text": "list the files"}, PastTurn(1, None, Outputs(silent).in_order()))
    assert folder.listed == 1


async def test_a_turn_that_goes_on_continues(site: PolicyRegistry, folder: Listing) -> None:
    """What is done is not done again, and what is left is: here, to say what came of it."""
    first = await carry_on(site, policy="short", payload={"text": "list the files"})
    assert folder.listed == 1
    past = PastTurn(1, "list the files", Outputs(first).in_order())
    going_on = await after(site, {"continues": 1}, past)
    assert folder.listed == 1
    assert "notes.md" in texts(going_on)[-1]
    assert not [output for output in Outputs(going_on).in_order() if isinstance(output, ToolOutput)]
