"""Properties of any turn: random answers, decisions and crashes, run for real against the scripted model."""

import asyncio
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from agents.engine.agent.ledger_history import ledger_messages
from agents.engine.agent.projection import CallIds, turn_messages
from agents.engine.interfaces.provider import ToolRequest
from agents.engine.interfaces.services import PastTurn
from agents.engine.ledger import EMPTY, Ledger, Step
from agents.engine.limits import Limits
from agents.engine.outputs.timeline import Outputs
from agents.engine.view import View
from tests.budget import examples
from tests.engine.cast import Counting, World, site
from tests.engine.journals import Crash, CrashingJournal, CrashPoint, kept_outputs
from tests.engine.sound import problems
from tests.engine.support import call, carry_on, decide, end_of, garbled, last, open_gates, says, seen

CALLS = st.sampled_from(
    [
        call("fx.read", a=1),
        call("fx.read", "same", a=2),
        call("shell.run", command="ls"),
        call("shell.run", cmd=1),
        call("shell.run", "same", "{bad"),
        call("report.write", name="r"),
        call("pay", amount=1),
        call("pay", amount=500),
        call("touch", name="t"),
        call("count.add", a=3),
        call("no.such"),
        last("fx.read", a=9),
        last("shell.run", command="bye"),
    ]
)
BATCHES = st.lists(st.lists(CALLS, max_size=5), max_size=3)
"""What the model asks for, answer by answer. An empty one cannot be read."""
DECISIONS = st.lists(st.sampled_from(["approve", "approve", "reject", "expired", "cancelled"]), min_size=1, max_size=4)
CRASHES = st.lists(st.tuples(st.integers(1, 12), st.booleans()), max_size=3)
UNKNOWN = st.lists(st.tuples(st.integers(0, 200), st.sampled_from(["", "1", "1/0", "1/0/human", "9/9"])), max_size=4)


class Played:
    """A turn played to its end: its journals, what was done, and what the model was asked."""

    def __init__(self, batches: list[list[ToolRequest]], decisions: list[str], crashes: list[tuple[int, bool]]) -> None:
        answers = [says("So." * (n % 2), *batch) if batch else garbled("{") for n, batch in enumerate(batches)]
        self.script = [*answers, says("Done.")]
        self.decisions, self.world = decisions, World()
        self.registry, self.provider = site(self.script, self.world.tools(), [Counting()])
        self.boundaries: list[Ledger] = [EMPTY]
        self.ledger = asyncio.run(self._play([CrashPoint(*crash) for crash in crashes]))

    async def _play(self, crashes: list[CrashPoint]) -> Ledger:
        ledger = EMPTY
        while not end_of(ledger):
            journal = CrashingJournal(ledger, crashes.pop() if crashes else None)
            with suppress(Crash):
                await carry_on(self.registry, ledger, journal=journal)
            for record in journal.records:
                self.boundaries.append(self.boundaries[-1].extend(record.steps))
            rows = kept_outputs(journal)
            ledger = journal.ledger
            assert rows == sorted(Outputs(ledger).in_order(), key=lambda o: o.position)
            if View(ledger).paused():
                ledger = self.decided(ledger)
                self.boundaries.append(ledger)
        return ledger

    def decided(self, ledger: Ledger) -> Ledger:
        """The ledger after everybody who is asked has decided, by turns as `decisions` says."""
        for n, path in enumerate(open_gates(ledger)):
            said = self.decisions[(n + len(ledger)) % len(self.decisions)]
            ledger = decide(ledger, path, "it_did_not" if "card" in path else said)
        return ledger


TURNS = st.builds(Played, BATCHES, DECISIONS, CRASHES)


@given(TURNS, UNKNOWN)
@settings(max_examples=examples(25))
def test_folding_any_prefix_never_raises(played: Played, unknown: list[tuple[int, str]]) -> None:
    """Also with steps of unknown types among them; and step by step is the same as at once (I1)."""
    steps = list(played.ledger)
    for place, path in unknown:
        steps.insert(place % (len(steps) + 1), Step("x", "hologram", {"a": 1}, path=path, id=10_000 + place))
    kept = Outputs()
    for n, step in enumerate(steps, 1):
        kept.add(step)
        assert kept.in_order() == Outputs(steps[:n]).in_order()
    assert kept.in_order() == Outputs(played.ledger).in_order()


@given(TURNS)
@settings(max_examples=examples(25))
def test_messages_of_any_prefix_are_valid(played: Played) -> None:
    """What the model was asked, and what a later prompt is told of a part of this one, a provider takes (I10, T-30)."""
    for request in played.provider.asked:
        assert problems(seen(request)) == []
    for n in range(len(played.ledger) + 1):
        past = PastTurn(1, "go", Outputs(played.ledger[:n]).in_order())
        assert problems(turn_messages(past, CallIds(), Limits())) == []
        assert problems(ledger_messages(played.ledger[:n])) == []


@given(TURNS)
@settings(max_examples=examples(25))
def test_a_turn_ends_once_and_does_nothing_twice(played: Played) -> None:
    """One result per call, every call has one, one start per attempt; what must not repeat has one effect per start."""
    results = [step.path for step in played.ledger if step.type == "action_result"]
    assert len(results) == len(set(results))
    assert not View(played.ledger).open_calls()
    starts = [(s.path, s.payload["attempt"]) for s in played.ledger if s.type == "action_start"]
    assert len(starts) == len(set(starts))
    for tool in ("shell.run", "report.write", "pay"):
        done = sum(1 for name, _ in played.world.done if name == tool)
        begun = sum(1 for path, _ in starts if _tool_at(played.ledger, path) == tool)
        assert done <= begun
        assert all(attempt == 1 for path, attempt in starts if _tool_at(played.ledger, path) == tool)


@given(TURNS)
@settings(max_examples=examples(25))
def test_nothing_starts_before_it_is_approved(played: Played) -> None:
    """A start stands after the approval of its gate, wherever there is one (T-18)."""
    for n, step in enumerate(played.ledger):
        gate = f"{step.path}/human"
        if step.type == "action_start" and View(played.ledger).call(gate):
            decided = View(played.ledger[:n]).result(gate)
            assert decided
            assert decided.payload["decision"] == "approve"


@given(TURNS)
@settings(max_examples=examples(25))
def test_replay_of_any_record_boundary_runs_only_what_has_no_result(played: Played) -> None:
    """From every ledger that a crash could leave: no recorded call is done again, no recorded round asked again."""
    for ledger in played.boundaries:
        world = World()
        registry, provider = site(played.script, world.tools(), [Counting()])
        finished = {step.path for step in ledger if step.type == "action_result"}
        did: list[str] = []
        for tool in world.tools():
            world.at[tool.name] = lambda call, did=did: did.append(call.path)  # type: ignore[misc]
        final = asyncio.run(_to_the_end(played, registry, ledger))
        assert not set(did) & finished
        rounds = {step.path for step in final if step.type == "action_call" and step.payload["policy"] == "model"}
        assert len(provider.asked) == len(rounds - finished)
        assert final[: len(ledger)] == ledger


async def _to_the_end(played: Played, registry: Any, ledger: Ledger) -> Ledger:
    while not end_of(ledger):
        ledger = await carry_on(registry, ledger)
        ledger = played.decided(ledger) if View(ledger).paused() else ledger
    return ledger


def _tool_at(ledger: Ledger, path: str) -> str:
    asked = View(ledger).call(path)
    return str(asked.payload["policy"]) if asked else ""
