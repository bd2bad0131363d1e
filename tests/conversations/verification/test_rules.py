"""The rules of a turn's steps: real turns keep them at every prefix, and every kind of breach is reported."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from agents.engine.execution.gates import shown_digest
from agents.engine.ledger import JSON, Step, digest
from agents.engine.view import View
from conversations.verification.rules import problems_of
from tests.conversations.recorded import MIXED, TWO_GATES
from tests.engine.cast import World, site
from tests.engine.support import carry_on, decide, end_of, open_gates

Breach = Callable[[list[Step]], Sequence[Step]]


async def turn(script: Sequence[object], decided: str = "approve") -> list[Step]:
    """A whole turn."""
    registry, _ = site(list(script), World().tools())
    ledger = await carry_on(registry)
    while not end_of(ledger):
        for path in open_gates(ledger):
            ledger = decide(ledger, path, decided)
        ledger = await carry_on(registry, ledger)
    return list(ledger)


def numbered(steps: Sequence[Step]) -> list[Step]:
    return [replace(step, id=n) for n, step in enumerate(steps, 1)]


def told(steps: Sequence[Step]) -> list[str]:
    return [problem.what for problem in problems_of(steps)]


@pytest.mark.parametrize("script", [TWO_GATES, MIXED])
@pytest.mark.parametrize("decided", ["approve", "reject"])
async def test_real_turns_keep_them_at_every_prefix(script: Sequence[object], decided: str) -> None:
    steps = await turn(script, decided)
    for end in range(len(steps) + 1):
        assert problems_of(steps[:end]) == []


async def test_unknown_types_of_steps_are_skipped() -> None:
    steps = await turn(TWO_GATES)
    for at in range(1, len(steps)):
        strange = Step("plugin:new", "hologram", {"any": [1, None]}, "9/9/9", 0)
        assert told(numbered([*steps[:at], strange, *steps[at:]])) == []


@pytest.mark.parametrize("payload", [{}, {"policy": None}, {"payload": 3}, {"usage": "x", "model": 1}, {"attempt": []}])
async def test_nothing_that_was_tampered_with_makes_it_raise(payload: dict[str, JSON]) -> None:
    steps = await turn(MIXED)
    for at in range(len(steps)):
        changed = replace(steps[at], payload=payload)
        problems_of([*steps[:at], changed, *steps[at + 1 :]])


def at(steps: list[Step], path: str, type: str, attempt: int = 1) -> int:
    """Where this step stands; of starts, the one of this attempt."""
    found = [n for n, s in enumerate(steps) if (s.path, s.type) == (path, type)]
    return found[attempt - 1]


def without(path: str, type: str) -> Breach:
    return lambda steps: [*steps[: (n := at(steps, path, type))], *steps[n + 1 :]]


def changed(path: str, type: str, actor: str = "", **payload: JSON) -> Breach:
    def breach(steps: list[Step]) -> list[Step]:
        n = at(steps, path, type)
        steps[n] = replace(steps[n], payload=steps[n].payload | payload, actor=actor or steps[n].actor)
        return steps

    return breach


def again(path: str, type: str) -> Breach:
    return lambda steps: [*steps[: (n := at(steps, path, type)) + 1], steps[n], *steps[n + 1 :]]


def earlier(path: str, type: str, than_path: str, than_type: str) -> Breach:
    def breach(steps: list[Step]) -> list[Step]:
        moved = steps.pop(at(steps, path, type))
        steps.insert(at(steps, than_path, than_type), moved)
        return steps

    return breach


@pytest.mark.parametrize(
    ("breach", "what"),
    [
        (without("1/0/human", "action_result"), "action_start at 1/0 without an approval at 1/0/human"),
        (changed("1/0/human", "action_result", decision="reject"), "without an approval at 1/0/human"),
        (changed("1/0/human", "action_result", decision="maybe"), "1/0/human was decided as 'maybe'"),
        (changed("1/0/human", "action_result", actor="model"), "1/0/human was decided by model"),
        (changed("1/0/human", "action_result", actor="tool:shell.run"), "1/0/human was decided by tool:shell.run"),
        (changed("1/0/human", "action_result", digest="0"), "for something other than what was asked"),
        (changed("1/0", "action_start", digest="0"), "what started at 1/0 is not what was approved"),
        (changed("1/0", "action_start", attempt=2), "attempt 2 at 1/0 where 1 is next"),
        (changed("", "resume", resumed_reason="x"), ""),
        (earlier("1/0", "action_start", "", "resume"), "action_start at 1/0 while the turn waits"),
        (earlier("1/0", "action_start", "1/0/human", "action_result"), "without an approval at 1/0/human"),
        (earlier("", "resume", "1/1/human", "action_result"), "resumes while 1 decisions are open"),
        (without("", "pause"), "resumes, but was not waiting"),
        (changed("", "pause", pending_action_count=5), "says that 5 decisions are open, but 2 are"),
        (again("1/0", "action_result"), "action_result at 1/0, which already has a result"),
        (again("1/0", "action_call"), "a second call at 1/0"),
        (again("1/0", "action_start"), "attempt 1 at 1/0 where 2 is next"),
        (without("1/0", "action_call"), "action_start at 1/0, where no call was made"),
        (without("1", "action_start"), "an answer at 1 to a question that was never asked"),
        (without("1/0", "action_result"), "the turn ends with 1/0 open"),
        (again("", "action_result"), "action_result after the turn's end"),
        (lambda steps: [*steps, Step("model", "text", {"text": "PS"})], "text after the turn's end"),
        (lambda steps: steps[1:], "the turn does not begin with its call"),
        (without("2", "action_call"), "at 2, where no call was made"),
        (changed("1", "action_result", usage={"input_tokens": 11}), "the turn's usage is"),
        (changed("", "action_result", usage={"input_tokens": 1}), "the turn's usage is"),
    ],
)
async def test_a_breach_is_told(breach: Breach, what: str) -> None:
    steps = numbered(breach(await turn(TWO_GATES)))
    problems = told(steps)
    assert any(what in problem for problem in problems) if what else problems == []


async def test_steps_stand_in_the_order_of_their_ids() -> None:
    steps = await turn(TWO_GATES)
    steps[3], steps[4] = steps[4], steps[3]
    assert f"comes after step {steps[3].id}" in told(steps)


async def test_a_claim_that_was_lost_starts_nothing_more() -> None:
    """I8: what a worker starts under an older claim than the last."""
    steps = await turn(TWO_GATES)
    fences = iter([2, 2, 1, 2])
    changed = [
        replace(s, payload=s.payload | {"fence": next(fences)}) if s.type == "action_start" else s for s in steps
    ]
    assert told(changed) == ["started under claim 1, after claim 2"]


async def test_a_call_is_not_started_after_the_turn_was_stopped() -> None:
    """CP28."""
    steps = await turn(TWO_GATES)
    n = at(steps, "1/0", "action_start")
    stopped = numbered([*steps[:n], Step("user:1", "cancel", {"reason": ""}), *steps[n:]])
    assert "1/0 was started after the turn was stopped" in told(stopped)


CARD = digest(["d", "card1"])
"""The digest of the first card of a call whose own is "d"."""


def second_attempt(**decided: JSON) -> list[Step]:
    """A call that began twice, with the card between."""
    asked = {"ask": "interrupted", "digest": CARD}
    return numbered(
        [
            Step("user:1", "action_call", {"policy": "agent", "payload": {}}),
            Step("runtime", "action_call", {"policy": "model", "payload": {}}, "1"),
            Step("model", "action_call", {"policy": "x", "payload": {}}, "1/0"),
            Step("worker:1", "action_start", {"attempt": 1, "digest": "d"}, "1/0"),
            Step(
                "runtime", "action_call", {"policy": "human", "payload": {"ask": "approve", "digest": "d"}}, "1/0/human"
            ),
            Step("user:1", "action_result", {"decision": "approve", "digest": "d"}, "1/0/human"),
            Step("runtime", "action_call", {"policy": "human", "payload": asked}, "1/0/card1"),
            *([Step("user:1", "action_result", decided, "1/0/card1")] if decided else []),
            Step("worker:1", "action_start", {"attempt": 2, "digest": "d"}, "1/0"),
        ]
    )


@pytest.mark.parametrize(
    ("decided", "problems"),
    [
        ({"decision": "run_again", "digest": CARD}, []),
        ({"decision": "it_ran", "digest": CARD}, ["action_start at 1/0 without an approval at 1/0/card1"]),
        ({}, ["action_start at 1/0 without an approval at 1/0/card1"]),
        (
            {"decision": "run_again", "digest": "e"},
            [
                "the approval at 1/0/card1 is for something other than what was asked: the digests differ",
                "what started at 1/0 is not what was approved at 1/0/card1: the digests differ",
            ],
        ),
    ],
)
def test_an_approval_is_used_up_by_one_start(decided: dict[str, JSON], problems: list[str]) -> None:
    assert told(second_attempt(**decided)) == problems


def test_an_empty_ledger_is_clean() -> None:
    assert problems_of([]) == []


@pytest.mark.parametrize(
    "change", [{"input": {"command": "rm"}}, {"facts": ["Sandboxed."]}, {"facts": None}, {"digest": "0"}, {}]
)
async def test_an_edited_approval_is_of_its_input_and_facts(change: dict[str, JSON]) -> None:
    """Its digest names the tool, the input that runs, the schema and what holds of it, as the asked one's does."""
    registry, _ = site(list(TWO_GATES), World().tools())
    ledger = await carry_on(registry)
    asked = View(ledger).call("1/0/human")
    assert asked
    gate, edit = asked.payload["payload"], {"command": "c"}
    named = shown_digest(gate["tool"], edit, gate["schema"], gate["facts"])
    said: dict[str, JSON] = {"digest": named, "input": edit, "facts": gate["facts"]} | change
    ledger = decide(decide(ledger, "1/0/human", "approve", **said), "1/1/human")
    problems = [problem for problem in told(list(ledger)) if "1/0/human" in problem]
    assert problems == (
        ["the approval at 1/0/human is for something other than its input, facts and change: the digests differ"]
        if change
        else []
    )
