"""Decisions: every way in which a gate can be decided, and what each one does. A further decision is a further row.

What asks a person is a gate (may this call run?), a card (what became of a call that was interrupted?) or a question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Ask(StrEnum):
    """What a person is asked."""

    APPROVE = "approve"  # whether a call may run
    QUESTION = "question"  # what a policy wants to know
    INTERRUPTED = "interrupted"  # whether a call ran that began, and whose end nobody saw


class Decision(StrEnum):
    """How it is decided, as the ledger and the API have it."""

    APPROVE = "approve"
    REJECT = "reject"
    ANSWER = "answer"
    IT_RAN = "it_ran"
    IT_DID_NOT = "it_did_not"
    RUN_AGAIN = "run_again"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Outcome(StrEnum):
    """What a decision does to the call that waits for it."""

    RUN = "run"  # it may start, as it was shown: the decision carries the digest of that
    REFUSE = "refuse"  # it never runs; its result is an error that says why
    RESULT = "result"  # nothing runs; what was decided is the result


@dataclass(frozen=True)
class DecisionRule:
    """One row of the table.

    asks: the questions it answers. outcome: what it does. state: what the gate's state is then. people: whether a
    person, or a rule or grant that a person made, decides so; otherwise only the site does. told: what a model reads of
    a call that does not run, where whoever decided gave no reason. label, follows: the button of a choice, and what
    comes of it. verdict: what a page says that was decided.
    """

    asks: tuple[Ask, ...]
    outcome: Outcome
    state: str
    verdict: str
    people: bool = True
    told: str = ""
    label: str = ""
    follows: str = ""


DECISIONS: Mapping[Decision, DecisionRule] = {
    Decision.APPROVE: DecisionRule((Ask.APPROVE,), Outcome.RUN, "approved", "Approved", label="Approve"),
    Decision.REJECT: DecisionRule(
        (Ask.APPROVE,), Outcome.REFUSE, "rejected", "Rejected", told="Rejected by a person.", label="Reject"
    ),
    Decision.ANSWER: DecisionRule((Ask.QUESTION,), Outcome.RESULT, "answered", "Answered", label="Answer"),
    Decision.IT_RAN: DecisionRule(
        (Ask.INTERRUPTED,),
        Outcome.RESULT,
        "answered",
        "Answered",
        told="It was interrupted before its output was recorded. The owner says it ran.",
        label="It ran",
        follows="The agent is told so and goes on. Nothing runs now.",
    ),
    Decision.IT_DID_NOT: DecisionRule(
        (Ask.INTERRUPTED,),
        Outcome.RESULT,
        "answered",
        "Answered",
        told="It was interrupted. The owner says it did not run.",
        label="It did not run",
        follows="The agent is told so and decides what to do.",
    ),
    Decision.RUN_AGAIN: DecisionRule(
        (Ask.INTERRUPTED,),
        Outcome.RUN,
        "approved",
        "Run again",
        label="Run again",
        follows="It starts once more, now. This is a new approval.",
    ),
    Decision.EXPIRED: DecisionRule(
        tuple(Ask),
        Outcome.REFUSE,
        "expired",
        "Nobody answered in time",
        people=False,
        told="Nobody answered in time, so this was not done.",
    ),
    Decision.CANCELLED: DecisionRule(
        tuple(Ask),
        Outcome.REFUSE,
        "cancelled",
        "Closed, the turn was stopped",
        people=False,
        told="Called off before anybody decided it.",
    ),
}

PEOPLE_MAY = tuple(decision for decision, rule in DECISIONS.items() if rule.people)
"""What people decide."""
RUNS = frozenset(decision for decision, rule in DECISIONS.items() if rule.outcome is Outcome.RUN)
"""The decisions by which a call may run. Four eyes are needed for these; anybody may say no to their own."""
STATES = tuple(dict.fromkeys(rule.state for rule in DECISIONS.values()))
"""The states of a gate that was decided; before that it is pending."""


def rule_of(decision: str) -> DecisionRule | None:
    """The row of this decision; None for a word that is none, which a ledger from outside may hold."""
    return DECISIONS[Decision(decision)] if decision in DECISIONS else None


def answers_to(ask: str) -> tuple[Decision, ...]:
    """What people may decide where this is asked; none where nobody knows what that is."""
    return tuple(decision for decision in PEOPLE_MAY if ask in DECISIONS[decision].asks)


def decided_as(ask: str, state: str) -> DecisionRule | None:
    """The row of a gate by what was asked and its state after the decision; None while it is pending."""
    return next((rule for rule in DECISIONS.values() if rule.state == state and ask in rule.asks), None)
