"""A turn that is killed before or after any record still ends, and nothing is done twice."""

import pytest

from agents.engine.ledger import Ledger
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.view import View
from tests.engine.agent.test_mixed_batch import BATCH
from tests.engine.cast import Counting, World, site
from tests.engine.journals import CrashingJournal, CrashPoint
from tests.engine.support import (
    ScriptedProvider,
    call,
    carry_on,
    decide,
    end_of,
    lines,
    open_gates,
    play,
    says,
)
from tests.judge import differences

S99 = [
    says("I will look.", call("shell.run", command="ls")),
    says("One more.", call("shell.run", command="date")),
    says("Two files, Friday."),
]
COUNTED = [says("", call("fx.read", a=1), call("touch", name="x")), says("", call("count.add", a=2)), says("Done.")]


def people(world: World) -> object:
    """Approve everything but `rm b`; of an interrupted call say honestly whether it ran."""

    def decide_gate(ledger: Ledger, path: str) -> Ledger:
        asked = View(ledger).call(path)
        assert asked
        question = asked.payload["payload"]
        command = question["input"].get("command") or question["input"].get("name")
        if question["ask"] == "interrupted":
            ran = world.times[question["tool"], command]
            return decide(ledger, path, "it_ran" if ran else "it_did_not")
        return decide(ledger, path, "reject" if command == "rm b" else "approve")

    return decide_gate


async def test_two_gates_in_one_turn() -> None:
    """S99: text and proposal, pause, approve, twice; then a summary; one turn, its records as they must be."""
    world = World()
    registry, provider = site(S99, world.tools())
    journal = CrashingJournal()
    await carry_on(registry, journal=journal)
    assert [lines(record.steps) for record in journal.records] == [
        [". action_call", "1 action_call", "1 action_start"],
        ["1 text", "1/0 action_call", "1 action_result", "1/0/human action_call", ". pause"],
    ]
    gate = journal.ledger[-2]
    assert gate.payload["payload"]["reason"] == "Run: ls"
    final = await play(registry, people(world))  # type: ignore[arg-type]
    assert world.done == [("shell.run", "ls"), ("shell.run", "date")]
    assert lines(final)[-4:] == ["3 action_start", "3 text", "3 action_result", ". action_result"]
    assert end_of(final) == {
        "state": "completed",
        "stop_reason": "text",
        "usage": {
            "input_tokens": 30,
            "output_tokens": 15,
            "cached_tokens": 0,
            "reasoning_tokens": 0,
            "cost_nano_usd": None,
            "models": ["test-1"],
        },
    }
    assert [provider.asked_for_round(n) for n in (2, 3)] == [1, 1]


def fresh(script: list[object], world: World) -> tuple[PolicyRegistry, ScriptedProvider]:
    return site(script, world.tools(), [Counting()])


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("script", [S99, [BATCH, says("Done.")], COUNTED], ids=["S99", "mixed", "counted"])
async def test_a_turn_survives_a_crash_at_any_record(script: list[object], after: bool) -> None:
    """The end is the undisturbed one, but for a call that was interrupted; no effect twice (S119, S120, R15)."""
    world = World()
    undisturbed = await play(fresh(script, world)[0], people(world))  # type: ignore[arg-type]
    point = CrashPoint(0)
    world = World()
    await play(fresh(script, world)[0], people(world), point)  # type: ignore[arg-type]
    records = point.count
    assert records > 6
    cards = 0
    for n in range(1, records + 1):
        world = World()
        registry, provider = fresh(script, world)
        final = await play(registry, people(world), CrashPoint(n, after))  # type: ignore[arg-type]
        end = end_of(final)
        assert end, n
        assert end["state"] == "completed", n
        asked = [provider.asked_for_round(number) for number in range(1, len(script) + 1)]
        assert max(asked) <= 2, n
        assert sum(asked) <= len(script) + 1, n
        repeated = {what for what, times in world.times.items() if times > 1}
        assert all(tool in ("fx.read", "touch", "count.add") for tool, _ in repeated), n
        assert not open_gates(final), n
        assert differences(final, undisturbed) == [], n
        cards += any("card" in step.path for step in final)
    assert cards == {"S99": 2, "mixed": 2, "counted": 0}[_name(script)]


def _name(script: list[object]) -> str:
    return "S99" if script is S99 else "counted" if script is COUNTED else "mixed"
