"""Trials: tools, agents and policies are tested without a site, as they would run on one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from agents.engine.errors import ToolError
from agents.engine.interfaces.messages import AssistantMessage, ResultMessage, UserMessage
from agents.engine.ledger import Step
from agents.engine.runtime.action import Action
from agents.engine.runtime.policy import Context, Registered
from agents.engine.tools.plugin import Plugin, Round
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.testing import Question, Trials, TrialServices, asks, call, run, trials, turn

__all__ = ["trials"]  # a fixture
DONE: list[str] = []


class Order(BaseModel):
    item: str
    pieces: int = 1


@tool("order", risk=Risk.HIGH, approval=lambda call: "Many." if call.input.pieces > 10 else None)
def order(call: ToolCall[Order]) -> str:
    """Order something."""
    DONE.append(call.input.item)
    call.widget("receipt", {"item": call.input.item}, fallback="A receipt.")
    call.file("receipt.txt", b"paid", media_type="text/plain", summary="A receipt.")
    return f"{call.input.pieces} {call.input.item}"


@tool("look", risk=Risk.READ)
async def look(call: ToolCall[Order]) -> str:
    """Look at the workspace."""
    return (call.services.workspace() / call.input.item).read_text()


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    DONE.clear()


def test_a_call_runs_and_says_all_that_it_did() -> None:
    trial = call(order, item="paper")
    assert (trial.state, trial.value, DONE) == ("completed", "1 paper", ["paper"])
    assert [output.type for output in trial.outputs] == ["tool", "widget", "file"]
    assert trial.files[0].content == b"paid"
    assert "[file receipt.txt] A receipt." in str(trial.messages)


def test_a_call_waits_and_runs_once_as_it_was_decided() -> None:
    trial = call(order, item="paper", pieces=11)
    assert (trial.state, trial.waiting["1"].reason, DONE) == ("waiting", "Many.", [])
    with pytest.raises(AssertionError, match="no value yet: <Trial of 'trial': waiting, waits for a person at 1>"):
        _ = trial.value
    assert trial.approve(input={"item": "pens", "pieces": 12}).value == "12 pens"
    assert DONE == ["pens"]
    with pytest.raises(ValueError, match="nothing waits for a person"):
        trial.approve()


def test_a_call_that_is_refused_raises_what_the_model_reads() -> None:
    with pytest.raises(ToolError, match=r"^Not now\.$") as rejected:
        _ = call(order, item="paper", pieces=11).reject(reason="Not now.").value
    assert rejected.value.code == "rejected"
    with pytest.raises(ToolError) as expired:
        _ = call(order, item="paper", pieces=11).expire().value
    assert (expired.value.code, DONE) == ("expired", [])
    with pytest.raises(ToolError, match="item: Field required"):
        _ = call(order).value


async def test_a_test_may_be_a_coroutine_itself() -> None:
    await asyncio.sleep(0)
    assert call(order, item="paper").value == "1 paper"


class Counted(BaseModel):
    rounds: int = 0


class Basket(Plugin[Counted]):
    """Says how often it prepared."""

    name = "basket"

    async def prepare(self, round: Round) -> None:
        state = round.state(self)
        state.rounds += 1
        round.context.append(f"Round {state.rounds}.")


def test_a_turn_of_an_agent_follows_its_script() -> None:
    script = [["I order.", asks(order, item="paper", pieces=11), asks(order, item="pens")], "Ordered."]
    trial = turn(script, tools=[order], plugins=[Basket], prompt="You order.", text="Paper and pens")
    assert (list(trial.waiting), DONE) == (["1/0"], [])
    assert trial.approve("1/0").value == "Ordered."
    assert DONE == ["paper", "pens"]
    first, second = trial.asked
    assert first == Question("You order.\n\nRound 1.", ("order",), (UserMessage("Paper and pens"),))
    assert second.system == "You order.\n\nRound 2."
    assert [line.split("\n")[0] for line in second.results] == ["11 paper", "1 pens"]
    assert isinstance(trial.messages[-1], AssistantMessage)


def test_a_script_may_be_a_function_and_must_be_long_enough() -> None:
    def answer(question: Question) -> Any:
        return f"I read: {question.results[0]}" if question.results else asks("order", item="paper")

    assert turn(answer, tools=[order]).value.startswith("I read: 1 paper")
    with pytest.raises(AssertionError, match="the script of the model has 1 answers, and it was asked once more"):
        turn([asks(order, item="paper")], tools=[order])
    with pytest.raises(TypeError, match="a call made by asks"):
        turn([{"tool": "order"}], tools=[order])


def test_what_a_tool_is_not_offered_is_told_to_the_model() -> None:
    trial = turn([asks("nothing"), "Oh."], tools=[order])
    (result,) = (message for message in trial.messages if isinstance(message, ResultMessage))
    assert result.content == "Error (unknown_tool): No tool 'nothing'. Call tools by the names that you were given."


async def both(action: Action, ctx: Context) -> list[Step]:
    """Order two things, the second on somebody's word."""
    paper = await ctx.tool("order", item="paper")
    pieces = int(await ctx.ask("How many?"))
    return ctx.done([paper, await ctx.tool("order", item="pens", pieces=pieces)])


def test_a_policy_asks_and_goes_on() -> None:
    trial = run(both, tools=[order])
    assert trial.waiting["2"].reason == "How many?"
    assert list(trial.answer("12").waiting) == ["3"]
    assert trial.approve().value == ["1 paper", "12 pens"]
    assert trial.records > 3


@pytest.mark.parametrize("registered", [both, Registered("orders.both", both)])
def test_a_process_that_dies_anywhere_repeats_nothing(registered: Any) -> None:
    """Whoever is asked what became of a call says that it ran: what the process had done by then stays done."""
    whole = run(registered, tools=[order]).answer("12").approve()
    for record in range(1, whole.records + 1):
        DONE.clear()
        trial = Trials(dies_at=record).run(registered, tools=[order])
        while trial.state == "waiting":
            (asked,) = trial.waiting.values()
            answers = {"question": "12", "interrupted": "it_ran"}
            trial.answer(answers[asked.ask]) if asked.ask in answers else trial.approve()
        assert ["paper", "pens"][: len(DONE)] == DONE
        if trial.state == "failed":  # what nobody saw the end of has no value, and the policy did not expect that
            with pytest.raises(ToolError, match="The owner says it ran"):
                _ = trial.value
        else:
            assert trial.value == ["1 paper", "12 pens"]
    assert whole.crash().ledger == whole.ledger


def test_the_fixture_shares_a_workspace(trials: Trials) -> None:
    (trials.services.workspace() / "note").write_text("hello")
    assert trials.call(look, item="note").value == "hello"
    assert trials.turn([asks(look, item="note"), "Read."], tools=[look]).asked[1].results == ["hello"]


def test_without_the_fixture_there_is_a_workspace_too() -> None:
    trial = call(look, item="none")
    with pytest.raises(ToolError, match="FileNotFoundError"):
        _ = trial.value
    assert trial.services.workspace().is_dir()


@tool("mail", risk=Risk.READ)
def mail(call: ToolCall) -> int:
    """Say how many mails there are."""
    return len(call.services["mail"])


def test_a_service_of_an_app_is_one_of_the_test_s_own() -> None:
    assert Trials(TrialServices(services={"mail": ["one", "two"]})).call(mail).value == 2
    with pytest.raises(ToolError, match=r"There is no service 'mail'\. There are: none\."):
        _ = call(mail).value
