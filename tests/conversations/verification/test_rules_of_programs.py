"""The rules of what policies ask and show: real programs keep them at every prefix, and every breach is reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from pydantic import BaseModel, field_validator

from agents import Action, Context, Step
from agents.engine import PolicyRegistry
from agents.engine.deciding import answer
from agents.engine.ledger import EMPTY, JSON, canonical
from agents.engine.outputs.kinds import WidgetOutput
from conversations.ledger.redacted import KeptStep, parsed, redacted
from conversations.verification.rules import problems_of
from tests.engine.support import carry_on, end_of, open_gates

Breach = Callable[[list[Step]], Sequence[Step]]


class Filled(BaseModel):
    """What is the word?"""

    word: str

    @field_validator("word")
    @classmethod
    def in_order(cls, word: str) -> str:
        if word == "odd":
            raise ValueError("it is not in order")
        return word


async def program() -> list[Step]:
    """Every kind of question, one of them asked three times, and all that a policy shows and draws."""
    registry, words = PolicyRegistry(), ["odd", "odd", "fine"]

    @registry.register("plan")
    async def plan(action: Action, ctx: Context) -> list[Step]:
        await ctx.ask(Filled)
        await ctx.ask("Which?", choices=["a", "b"], who="another")
        await ctx.show(WidgetOutput(widget="table", data={"rows": [1]}, fallback="one row"))
        await ctx.file("a.txt", b"a", media_type="text/plain", summary="An a.")
        await ctx.now()
        return ctx.done()

    ledger = EMPTY
    while not end_of(ledger):
        ledger = await carry_on(registry, ledger, policy="plan", payload={})
        for gate in open_gates(ledger):
            given: JSON = {"word": words.pop(0)} if gate.startswith("1") else "a"
            ledger = answer(ledger, gate, by="user:7", answer=given)
    return list(ledger)


def told(steps: Sequence[Step]) -> list[str]:
    numbered = [replace(step, id=n) for n, step in enumerate(steps, 1)]
    return [problem.what for problem in problems_of(numbered)]


def changed(path: str, type: str, actor: str = "", **payload: JSON) -> Breach:
    """Change the first step of this type at this path."""

    def breach(steps: list[Step]) -> list[Step]:
        n = next(n for n, step in enumerate(steps) if (step.path, step.type) == (path, type))
        step = replace(steps[n], payload=steps[n].payload | payload, actor=actor or steps[n].actor)
        return [*steps[:n], step, *steps[n + 1 :]]

    return breach


def without(path: str, type: str) -> Breach:
    return lambda steps: [step for step in steps if (step.path, step.type) != (path, type)]


def elsewhere(path: str, other: str) -> Breach:
    return lambda steps: [replace(step, path=other) if step.path == path else step for step in steps]


async def test_real_programs_keep_them_at_every_prefix() -> None:
    steps = await program()
    assert {"1/card1", "1/card2"} <= {step.path for step in steps}
    for end in range(len(steps) + 1):
        assert problems_of(steps[:end]) == []


@pytest.mark.parametrize(
    ("breach", "what"),
    [
        (
            changed("1", "action_result", answer={"word": 1}),
            "the answer at 1 is none to what was asked: word: Enter a text",
        ),
        (changed("2", "action_result", answer="c"), "the answer at 2 is none to what was asked: answer: Choose one of"),
        (changed("2", "action_result", "user:1"), "2 was answered by user:1, who asked for the turn"),
        (changed("2", "action_result", digest="0"), "the answer at 2 is to something other than what was asked"),
        (changed("2", "action_result", decision="approve"), "2, which asks 'question', was decided as 'approve'"),
        (changed("1", "action_result", decision="expired"), "the question at 1 is asked again at 1/card1, and was not"),
        (elsewhere("1/card1", "1/card7"), "the question at 1 is asked again at 1/card7, out of turn"),
        (without("3", "widget"), "the call of 'show' at 3 says nothing"),
        (changed("3", "action_call", payload={"kind": "text"}), "the call of 'show' at 3 says widget"),
        (without("4", "file"), "the call of 'file' at 4 says nothing"),
        (elsewhere("4", "5"), "a second call at 5"),
    ],
)
async def test_a_breach_is_told(breach: Breach, what: str) -> None:
    found = told(breach(await program()))
    assert any(each.startswith(what) for each in found), found


async def test_a_redacted_program_keeps_them() -> None:
    """What the rules compare is kept, or not compared."""

    def without_content(step: Step) -> Step:
        kept = KeptStep(step.id, 1, step.path, step.actor, step.type, step.time, canonical(step.payload), "")
        payload = parsed(redacted(kept))
        assert payload is not None
        return replace(step, payload=payload)

    steps = await program()
    hidden = [without_content(step) for step in steps]
    assert problems_of(hidden) == []
    assert "An a." not in str(hidden)
