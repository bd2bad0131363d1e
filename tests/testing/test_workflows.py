"""Trials of workflows: tested without a site, as they would run on one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from agents.engine.errors import ToolError
from agents.engine.ledger import Step
from agents.engine.runtime.action import Action
from agents.engine.runtime.policy import Context
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.testing import Trials, run
from tests.agentsite.processes import ROOT
from workflows import Flow, workflow

DONE: list[str] = []


class Order(BaseModel):
    item: str = Field(min_length=2)
    pieces: int = Field(default=1, ge=1)


@tool("shop.buy", risk=Risk.HIGH)
def buy(call: ToolCall[Order]) -> str:
    """Buy something."""
    DONE.append(call.input.item)
    return f"{call.input.pieces} {call.input.item}"


@workflow("shop.order", title="Order something", seconds=60, rounds=2)
async def order(flow: Flow[Order]) -> dict[str, Any]:
    """Orders something, and lets an agent say thanks."""
    bought = await flow.tool("shop.buy", input=flow.input)
    return {"bought": bought, "said": await flow.agent("Say thanks.", tools=[])}


class Orders(BaseModel):
    items: list[str]


@workflow("shop.orders", title="Order several things")
async def orders(flow: Flow[Orders]) -> list[Any]:
    """Orders each of them by the other workflow."""
    return [await flow.workflow("shop.order", item=item) for item in flow.input.items]


@workflow("shop.bare", input=Order)
async def bare(action: Action, ctx: Context) -> list[Step]:
    """Says what it was given."""
    return ctx.done(action.payload)


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


def test_a_workflow_runs_with_its_input_and_is_gated_like_any_policy() -> None:
    trial = run(order, tools=[buy], script=["Thanks."], item="paper", pieces=3)
    assert (trial.state, list(trial.waiting), DONE) == ("waiting", ["1"], [])
    assert trial.approve().value == {"bought": "3 paper", "said": "Thanks."}
    assert repr(trial) == "<Trial of 'workflow:shop.order': completed>"
    payload = trial.ledger[0].payload["payload"]
    assert payload == order.payload({"item": "paper", "pieces": 3})  # as a site records it


def test_its_own_budget_is_the_budget_of_the_run() -> None:
    trial = Trials().run(orders, tools=[buy], policies=[order], script=["Thanks."] * 3, items=["a1", "a2", "a3"])
    assert trial.approve().approve().approve().state == "completed"  # 40 rounds, the purse of the root
    short = workflow("shop.short", rounds=1)(orders.function)
    trial = Trials().run(short, tools=[buy], policies=[order], script=["Thanks."] * 3, items=["a1", "a2"])
    with pytest.raises(ToolError) as raised:
        _ = trial.approve().approve().value
    assert raised.value.code == "max_rounds"


def test_a_workflow_within_another_runs_in_the_same_trial() -> None:
    trial = run(orders, tools=[buy], policies=[order], script=["Thanks.", "Thanks."], items=["paper", "pens"])
    trial.approve().approve()
    assert [each["bought"] for each in trial.value] == ["1 paper", "1 pens"]
    alone = run(orders, tools=[buy], items=["paper"])
    with pytest.raises(ToolError, match=r"No policy 'workflow:shop\.order'\."):
        _ = alone.value


def test_an_input_that_it_does_not_accept_ends_it() -> None:
    with pytest.raises(ToolError, match="The input does not fit 'Order something': item: ") as raised:
        _ = run(order, item="a").value
    assert raised.value.code == "invalid_input"


def test_one_of_an_action_and_a_context_has_the_input_as_its_payload() -> None:
    assert run(bare, item="paper").value == {"item": "paper"}


def test_a_process_that_dies_anywhere_repeats_nothing() -> None:
    whole = run(order, tools=[buy], script=["Thanks."], item="paper").approve()
    assert whole.records > 4
    for record in range(1, whole.records + 1):
        DONE.clear()
        trial = Trials(dies_at=record).run(order, tools=[buy], script=["Thanks."], item="paper")
        while trial.state == "waiting":
            (asked,) = trial.waiting.values()
            trial.answer("it_ran") if asked.ask == "interrupted" else trial.approve()
        assert len(DONE) <= 1
        assert trial.state == "completed" or "it_ran" in str(trial.ledger)


def test_it_takes_no_site(tmp_path: Path) -> None:
    """Not even settings of Django: a test imports the workflow, and runs it."""
    code = """
from agents.testing import run
from workflows import Flow, workflow

@workflow("shop.hello")
async def hello(flow: Flow) -> str:
    return "Hello."

print(run(hello).value)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    command = [sys.executable, "-W", "error", "-c", code]
    told = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (told.stdout, told.returncode) == ("Hello.\n", 0), told.stderr
