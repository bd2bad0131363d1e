"""Decisions: every way a gate can be decided, and what each one does. To add a decision, add a row to the table.

A person is asked by a gate (may this call run?), a card (what became of an interrupted call?) or a question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Ask(StrEnum):
    """What a person is asked."""

    APPROVE = "approve"  # whether a call may run
    QUESTION = "question"  # what a policy wants to know
    INTERRUPTED = "interrupted"  # whether a call ran that began and has no recorded end


class Decision(StrEnum):
    """How a gate was decided, in the words of the ledger and the API."""

    APPROVE = "approve"
    EDITED = "edited"
    REJECT = "reject"
    ANSWER = "answer"
    IT_RAN = "it_ran"
    IT_DID_NOT = "it_did_not"
    RUN_AGAIN = "run_again"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Outcome(StrEnum):
    """What a decision does to the waiting call."""

    RUN = "run"  # it may start exactly as shown: the decision carries the digest of what was shown
    ASK = "ask"  # somebody else is asked about the call as it is now
    REFUSE = "refuse"  # it never runs; its result is an error with the reason
    RESULT = "result"  # nothing runs; the decision itself is the result


@dataclass(frozen=True)
class DecisionRule:
    """One row of the table.

    asks: the questions it answers. outcome: what it does to the call. state: the gate's state afterwards. people:
    whether a person, or a rule or grant made by a person, may decide this; otherwise only the site does. told: the
    model reads this about a call that does not run, unless whoever decided gave a reason; to a model that is a call
    that failed, and nothing about approvals (S100). label, follows: the text of the button, and what happens when it is
    pressed. verdict: what pages show for the decision.
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
    # What the site makes of an approval with another input where four eyes are needed: it must not run on one word.
    Decision.EDITED: DecisionRule((Ask.APPROVE,), Outcome.ASK, "edited", "Edited", people=False),
    Decision.REJECT: DecisionRule(
        (Ask.APPROVE,), Outcome.REFUSE, "rejected", "Rejected", told="A person rejected this call.", label="Reject"
    ),
    Decision.ANSWER: DecisionRule((Ask.QUESTION,), Outcome.RESULT, "answered", "Answered", label="Answer"),
    Decision.IT_RAN: DecisionRule(
        (Ask.INTERRUPTED,),
        Outcome.RESULT,
        "answered",
        "Answered",
        told="It was interrupted before its output was recorded. The owner says it ran.",
        label="It ran",
        follows="The turn continues as if it had been recorded. Nothing runs now.",
    ),
    Decision.IT_DID_NOT: DecisionRule(
        (Ask.INTERRUPTED,),
        Outcome.RESULT,
        "answered",
        "Answered",
        told="It was interrupted. The owner says it did not run.",
        label="It did not run",
        follows="The turn continues without it. Nothing runs now.",
    ),
    Decision.RUN_AGAIN: DecisionRule(
        (Ask.INTERRUPTED,),
        Outcome.RUN,
        "approved",
        "Run again",
        label="Run again",
        follows="It runs once more, right away. This counts as a new approval.",
    ),
    Decision.EXPIRED: DecisionRule(
        tuple(Ask),
        Outcome.REFUSE,
        "expired",
        "Nobody answered in time",
        people=False,
        told="This was not done in time.",
    ),
    Decision.CANCELLED: DecisionRule(
        tuple(Ask),
        Outcome.REFUSE,
        "cancelled",
        "Closed because the turn was stopped",
        people=False,
        told="Cancelled before it ran.",
    ),
}

PEOPLE_MAY = tuple(decision for decision, rule in DECISIONS.items() if rule.people)
"""The decisions that people can make."""
RUNS = frozenset(decision for decision, rule in DECISIONS.items() if rule.outcome is Outcome.RUN)
"""The decisions that let a call run."""
FOUR_EYES = RUNS | {Decision.ANSWER}
"""The decisions that are another person's where four eyes are needed. Anybody may say no to their own call."""
STATES = tuple(dict.fromkeys(rule.state for rule in DECISIONS.values()))
"""The states of a decided gate; until then it is pending."""


def rule_of(decision: str) -> DecisionRule | None:
    """Return the row of this decision; None for an unknown word, which a ledger from elsewhere may hold."""
    return DECISIONS[Decision(decision)] if decision in DECISIONS else None


def answers_to(ask: str) -> tuple[Decision, ...]:
    """Return the decisions people can make on this kind of question; none for an unknown kind."""
    return tuple(decision for decision in PEOPLE_MAY if ask in DECISIONS[decision].asks)


def decided_as(ask: str, state: str) -> DecisionRule | None:
    """Return the row for what was asked and the gate's state after the decision; None while it is pending."""
    return next((rule for rule in DECISIONS.values() if rule.state == state and ask in rule.asks), None)
