"""The table of decisions: every one has a row, and what the engine does with each follows from it."""

from __future__ import annotations

import pytest

from agents.engine.decisions import DECISIONS, PEOPLE_MAY, RUNS, STATES, Ask, Decision, Outcome, answers_to, decided_as
from agents.engine.execution.effect import refusal
from agents.engine.execution.gates import GateDecision
from agents.engine.execution.starting import card_error
from agents.engine.ledger import Step
from agents.engine.outputs.kinds import ToolOutput
from agents.engine.outputs.timeline import Outputs


def decided(decision: Decision, ask: Ask) -> ToolOutput:
    """A tool's entry whose gate was decided so."""
    called = Step("model", "action_call", {"policy": "shell.run", "payload": {}}, path="1/0", id=1)
    asked = Step("runtime", "action_call", {"policy": "human", "payload": {"ask": ask.value}}, path="1/0/human", id=2)
    answer = Step("user:1", "action_result", {"decision": decision.value}, path="1/0/human", id=3)
    entry = Outputs([called, asked, answer]).entry("1/0")
    assert entry is not None
    return entry


def test_every_decision_has_a_row() -> None:
    assert list(DECISIONS) == list(Decision)
    assert {ask for rule in DECISIONS.values() for ask in rule.asks} == set(Ask)


@pytest.mark.parametrize("decision", Decision)
def test_the_gate_is_in_the_state_of_the_row(decision: Decision) -> None:
    for ask in DECISIONS[decision].asks:
        gate = decided(decision, ask).approval
        assert gate is not None
        assert gate.state == DECISIONS[decision].state
        assert gate.state in STATES
        assert decided_as(ask, gate.state) in DECISIONS.values()


@pytest.mark.parametrize("ask", Ask)
def test_people_can_answer_whatever_they_are_asked(ask: Ask) -> None:
    assert answers_to(ask)
    assert all(ask in DECISIONS[decision].asks and DECISIONS[decision].people for decision in answers_to(ask))
    assert answers_to("no such thing") == ()


def test_what_refuses_says_why_to_the_model() -> None:
    for decision, rule in DECISIONS.items():
        if rule.outcome is Outcome.REFUSE:
            told = refusal(GateDecision(decision))
            assert (told.code, told.message) == (rule.state, rule.told)
            assert refusal(GateDecision(decision, reason="Not today.")).message == "Not today."


def test_each_answer_to_a_card_is_told_or_runs() -> None:
    for decision in answers_to(Ask.INTERRUPTED):
        told = card_error(GateDecision(decision), "It cannot run again.").message
        assert told == ("It cannot run again." if decision in RUNS else DECISIONS[decision].told)


def test_only_people_let_a_call_run() -> None:
    assert set(PEOPLE_MAY) >= RUNS
