"""The judge of S119 notices whatever is not as it was, and excuses what a crash explains."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from agents.engine.ledger import Ledger, Step
from agents.engine.view import View
from tests.engine.agent.test_mixed_batch import BATCH
from tests.engine.cast import World, site
from tests.engine.journals import CrashPoint
from tests.engine.support import decide, play, says
from tests.judge import MAY_DIFFER, differences

Decide = Callable[[Ledger, str], Ledger]


def answering(card: str) -> Decide:
    """People who approve everything but `rm b`, and answer cards so."""

    def decide_gate(ledger: Ledger, path: str) -> Ledger:
        asked = View(ledger).call(path)
        assert asked
        question = asked.payload["payload"]
        if question["ask"] == "interrupted":
            return decide(ledger, path, card)
        return decide(ledger, path, "reject" if question["input"].get("command") == "rm b" else "approve")

    return decide_gate


@cache
def mixed(card: str = "", n: int = 0) -> Ledger:
    """A turn with every sort of call. Crashed before its n-th record, with this answer to the card about it."""
    crash = CrashPoint(n) if n else None
    registry, _ = site([BATCH, says("Done.")], World().tools())
    return asyncio.run(play(registry, answering(card), crash))


@cache
def crashed(card: str) -> Ledger:
    """The turn, crashed before the result of the first approved call was recorded."""
    found = (mixed(card, n) for n in range(1, 20))
    return next(ledger for ledger in found if View(ledger).call("1/1/card1"))


def test_ids_times_and_starts_may_differ() -> None:
    ledger = mixed()
    others = [replace(step, id=step.id + 7, time="later") for step in ledger]
    again = [step for step in ledger if step.type == "action_start"]
    assert differences([*others, *again, Step("runtime", "note", {"code": "recovered"})], ledger) == []


@pytest.mark.parametrize("card", ["run_again", "it_ran"])
def test_a_card_is_excused(card: str) -> None:
    assert differences(crashed(card), mixed()) == []


def test_a_call_that_ran_again_has_its_result() -> None:
    """Only what a person said of it in place of its result excuses another."""
    ran_again = [
        replace(step, payload=step.payload | {"decision": "run_again"}) if step.path == "1/1/card1" else step
        for step in crashed("it_ran")
    ]
    assert differences(ran_again, mixed()) != []


@pytest.mark.parametrize("card", ["", "run_again", "it_ran"])
def test_whatever_else_differs_is_told(card: str) -> None:
    """Calls, deferrals, pauses, decisions, outputs, results: none may be missing, be there twice, or be another."""
    ledger = list(crashed(card) if card else mixed())
    told = 0
    for n, step in enumerate(ledger):
        excused = card and (step.path.startswith("1/1/card") or (step.path == "1/1" and step.type == "action_result"))
        waits_for_a_card = card and step.type in ("pause", "resume") and View(ledger[:n]).call("1/1/card1")
        if step.type in MAY_DIFFER or excused or waits_for_a_card or _behind_a_card(step, mixed()):
            continue
        told += 1
        other = replace(step, payload=step.payload | {"more": 1})
        for changed in ([], [step, step], [other], [replace(step, actor="user:9")], [replace(step, path="9")]):
            assert differences([*ledger[:n], *changed, *ledger[n + 1 :]], mixed()) != [], step
    assert told >= 20


def _behind_a_card(step: Step, undisturbed: Ledger) -> bool:
    """Whether this call waited because of the card only."""
    return step.type == "action_deferred" and not View(undisturbed).at(step.path, "action_deferred")


def test_the_order_is_compared() -> None:
    """Of calls that ran side by side, that at each path."""
    ledger = [step for step in mixed() if step.type not in MAY_DIFFER]
    for n in range(1, len(ledger)):
        swapped = [*ledger[: n - 1], ledger[n], ledger[n - 1], *ledger[n + 1 :]]
        assert differences(swapped, ledger) != []
        same_place = ledger[n - 1].path == ledger[n].path
        assert (differences(swapped, ledger, side_by_side=True) != []) is same_place
