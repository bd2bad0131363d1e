"""Ledgers of earlier versions verify, fold to the same outputs, and go on if they had not ended (CP33)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from agents.engine.ledger import JSON, Ledger, Step
from agents.engine.outputs.timeline import Outputs
from agents.engine.view import View
from conversations.verification.exported import Exported, verify_file
from conversations.verification.rules import problems_of
from tests.engine.cast import World, site
from tests.engine.support import answers_in, carry_on, decide, end_of, open_gates, says
from tests.ledgers import record

FOLDER = Path(record.__file__).parent
NAMES = sorted(file.stem for file in FOLDER.glob("*.jsonl"))
UNFINISHED = ("approved", "interrupted_waiting", "lost_asking", "lost_reading", "queued", "waiting")


@cache
def recorded(name: str) -> Exported:
    with (FOLDER / f"{name}.jsonl").open("rb") as lines:
        return verify_file(lines)


def turn_of(name: str) -> Ledger:
    """The last turn of a ledger."""
    return Ledger(tuple(recorded(name).turns[max(recorded(name).turns)]))


def folded(steps: list[Step]) -> list[JSON]:
    return [output.model_dump(mode="json") for output in Outputs(steps).in_order()]


def test_there_are_ledgers_of_all_kinds() -> None:
    assert len(NAMES) >= 30
    assert {name for name in NAMES if end_of(turn_of(name)) is None} == set(UNFINISHED)


@pytest.mark.parametrize("name", NAMES)
def test_it_verifies_and_folds_to_what_it_folded_to_then(name: str) -> None:
    """Chain, rules and totals; the outputs may have more fields than then, and none that says something else."""
    found = recorded(name)
    assert found.problems == []
    expected = json.loads((FOLDER / f"{name}.json").read_text())
    assert expected.keys() == {str(pk) for pk in found.turns}
    for pk, steps in found.turns.items():
        assert [_known(now, then) for now, then in zip(folded(steps), expected[str(pk)], strict=True)] == expected[
            str(pk)
        ]


def _known(now: JSON, then: JSON) -> JSON:
    """What an output says now, of what it said then."""
    if isinstance(now, dict) and isinstance(then, dict):
        return {key: _known(value, then[key]) for key, value in now.items() if key in then}
    return now


@pytest.mark.parametrize("name", NAMES)
def test_every_beginning_of_it_is_a_good_ledger(name: str) -> None:
    """It folds and keeps the rules; step by step the outputs are those of the whole beginning."""
    for steps in recorded(name).turns.values():
        outputs = Outputs()
        for count, step in enumerate(steps, 1):
            outputs.add(step)
            assert problems_of(steps[:count]) == []
            assert outputs.in_order() == Outputs(steps[:count]).in_order()


@pytest.mark.parametrize("name", [name for name in NAMES if name not in UNFINISHED])
async def test_one_that_ended_is_replayed_without_doing_anything(name: str) -> None:
    for steps in recorded(name).turns.values():
        world = World()
        registry, provider = site([], world.tools())
        root = steps[0].payload
        ledger = Ledger(tuple(steps))
        after = await carry_on(registry, ledger, policy=root["policy"], payload=root["payload"])
        assert (list(after), provider.asked, world.done) == (steps, [], [])


@pytest.mark.parametrize("name", UNFINISHED)
async def test_one_that_did_not_end_goes_on(name: str) -> None:
    """Nothing that was answered is asked again, nothing that came to a result is done again; a person decides."""
    ledger, world = turn_of(name), World()
    registry, provider = site(lambda _: says("Done."), world.tools())
    answered = [step for step in ledger if step.type == "action_result" and "usage" in step.payload]
    unfinished = [call for call in View(ledger).open_calls() if call.actor == "model"]
    root = ledger[0].payload
    while end_of(ledger) is None:
        for path in open_gates(ledger):
            asked = View(ledger).call(path)
            assert asked
            card = asked.payload["payload"]["ask"] == "interrupted"
            ledger = decide(ledger, path, "it_did_not" if card else "approve")
        ledger = await carry_on(registry, ledger, policy=root["policy"], payload=root["payload"], fence=9)
    end = end_of(ledger)
    assert end
    assert end["state"] == "completed"
    assert [answers_in(request) for request in provider.asked] == [len(answered)]
    assert len(world.done) == len(unfinished) - (name == "interrupted_waiting")
    assert problems_of(ledger) == []


def test_a_recorded_ledger_is_never_written_again(capsys: pytest.CaptureFixture[str]) -> None:
    before = (FOLDER / "s99.jsonl").read_bytes()
    record.record("s99", None)
    assert capsys.readouterr().out == "s99: is recorded\n"
    assert (FOLDER / "s99.jsonl").read_bytes() == before
