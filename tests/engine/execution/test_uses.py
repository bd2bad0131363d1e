"""What a decision uses up: taken in the record with the decision or not at all, and then people are asked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from agents.engine import Action, Context, Step
from agents.engine.errors import Cancelled, UsedUp
from agents.engine.execution.effect import as_policy
from agents.engine.grants.grant import Asked
from agents.engine.interfaces.journal import Record
from agents.engine.ledger import EMPTY, Ledger
from agents.engine.outputs.timeline import Outputs
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.runtime.run import Run
from agents.engine.tools.gatekeeper import AskEverybody, GateVerdict
from agents.engine.tools.tool import Tool, ToolCall
from agents.engine.view import View
from tests.budget import examples
from tests.engine.cast import World, site
from tests.engine.journals import Crash, CrashingJournal, CrashPoint, kept_outputs
from tests.engine.support import Site, call, carry_on, decide, end_of, lines, open_gates, says

GRANT = "grant:3"
TWO = [says("", call("shell.run", command="a"), call("shell.run", command="b")), says("Done.")]


class Meter(CrashingJournal):
    """A journal that holds what is left, and takes what a record uses only with the record."""

    def __init__(
        self, ledger: Ledger = EMPTY, crash: CrashPoint | None = None, left: Counter[str] | None = None
    ) -> None:
        super().__init__(ledger, crash)
        self.left: Counter[str] = Counter() if left is None else left
        self.used: list[str] = []
        self.given_back: list[str] = []

    async def record(self, record: Record) -> None:
        for name in record.uses:
            if self.left[name] < record.uses.count(name):
                raise UsedUp(name)
        kept = len(self.records)
        try:
            await super().record(record)
        finally:
            if len(self.records) > kept:
                self.left.subtract(record.uses)
                self.used += record.uses
                self.left.update(record.gives_back)
                self.given_back += record.gives_back


@dataclass
class Granting(AskEverybody):
    """Allows every call by the grant, as if there were always something left of it."""

    uses: tuple[str, ...] = (GRANT,)

    async def decide(self, tool: Tool, call: ToolCall[Any], asked: Asked) -> GateVerdict:
        return GateVerdict("allow", GRANT, "It was granted.", self.uses)


@dataclass
class Ending(Granting):
    """A grant that is revoked after so many starts were looked at."""

    lasts: int = 0

    async def holds(self, tool: Tool, by: str, asked: Asked | None) -> str | None:
        self.lasts -= by == GRANT
        return "It was revoked." if by == GRANT and self.lasts < 0 else None


def decided_by(ledger: Ledger) -> Mapping[str, str]:
    """Who decided each gate."""
    return {step.path: step.actor for step in ledger if "decision" in step.payload}


def check(journal: Meter) -> None:
    """No start stands beside what is used up, a decision stands with its gate, and the outputs fit the steps."""
    for record in journal.records:
        said = lines(record.steps)
        assert not (record.uses and any(step.type == "action_start" for step in record.steps)), said
        gates = [step.path for step in record.steps if step.actor == GRANT]
        assert all(f"{gate} action_call" in said for gate in gates), said
    stored = {output.position: output for output in kept_outputs(journal)}
    assert stored == {output.position: output for output in Outputs(journal.ledger).in_order()}


async def test_what_is_left_decides_and_the_rest_asks_people(world: World) -> None:
    """One is left for two calls: the first is decided by it, the second by a person, and both run once."""
    registry, _ = site(TWO, world.tools())
    journal = Meter(left=Counter({GRANT: 1}))
    waiting = await carry_on(registry, journal=journal, gatekeeper=Granting())
    assert (decided_by(waiting), open_gates(waiting)) == ({"1/0/human": GRANT}, ["1/1/human"])
    assert world.done == [], "nothing runs before every gate of the batch is decided"
    assert (journal.used, journal.left[GRANT]) == ([GRANT], 0)
    assert View(waiting).paused()
    journal.records.clear()
    journal.seeded = decide(waiting, "1/1/human")
    ended = await carry_on(registry, journal.seeded, journal=journal, gatekeeper=Granting())
    assert world.done == [("shell.run", "a"), ("shell.run", "b")]
    assert decided_by(ended)["1/1/human"] == "user:7"
    assert journal.used == [GRANT]


async def test_it_is_taken_in_the_record_of_the_decision_and_no_start_stands_there(world: World) -> None:
    registry, _ = site([TWO[0], TWO[1]], world.tools())
    journal = Meter(left=Counter({GRANT: 2}))
    ledger = await carry_on(registry, journal=journal, gatekeeper=Granting(), start=True)
    (record,) = (record for record in journal.records if record.uses)
    assert record.uses == (GRANT, GRANT)
    assert [line for line in lines(record.steps) if "human" in line] == [
        "1/0/human action_call",
        "1/0/human action_result",
        "1/1/human action_call",
        "1/1/human action_result",
    ]
    check(journal)
    assert world.done == [("shell.run", "a"), ("shell.run", "b")]
    assert (end_of(ledger) or {})["state"] == "completed"


async def test_a_refusal_by_a_rule_may_use_something_up_too(world: World) -> None:
    class Denying(Granting):
        async def decide(self, tool: Tool, call: ToolCall[Any], asked: Asked) -> GateVerdict:
            return GateVerdict("deny", GRANT, "Not that.", (GRANT,))

    registry, _ = site(TWO, world.tools())
    journal = Meter(left=Counter({GRANT: 1}))
    waiting = await carry_on(registry, journal=journal, gatekeeper=Denying())
    assert (decided_by(waiting), open_gates(waiting)) == ({"1/0/human": GRANT}, ["1/1/human"])


async def beside(action: Action, ctx: Context) -> list[Step]:
    """Calls three tools at the same moment: two that the grant decides, and one that needs nobody."""
    calls = [("report.write", {"name": "r"}), ("shell.run", {"command": "a"}), ("shell.run", {"command": "b"})]
    await ctx.gather(*(ctx.call(Action(name, said), key=f"k{n}") for n, (name, said) in enumerate(calls)))
    return []


def program(world: World, root: Any = beside) -> PolicyRegistry:
    registry = PolicyRegistry({tool.name: as_policy(tool) for tool in world.tools()})
    registry.register("root")(root)
    return registry


async def test_calls_of_a_program_side_by_side_each_take_their_own(world: World) -> None:
    """A start of another call never stands beside a decision that may have to be taken out again."""
    journal = Meter(left=Counter({GRANT: 1}))
    waiting = await carry_on(program(world), policy="root", payload={}, journal=journal, gatekeeper=Granting())
    check(journal)
    assert len(open_gates(waiting)) == 1
    assert Counter(world.done).total() == 2, "the call that needed nobody, and the one that the grant allowed"


@given(
    left=st.integers(0, 4),
    batch=st.lists(st.sampled_from(["shell.run", "report.write", "fx.read"]), min_size=1, max_size=5),
    side_by_side=st.booleans(),
    lasts=st.integers(0, 6),
    crashes=st.lists(st.tuples(st.integers(1, 8), st.booleans()), max_size=3),
)
@example(left=1, batch=["report.write", "shell.run"], side_by_side=False, lasts=6, crashes=[(3, True), (1, True)])
@example(left=3, batch=["shell.run"] * 3, side_by_side=False, lasts=1, crashes=[(7, True), (1, True)])
@settings(max_examples=examples(150), deadline=None)
def test_never_more_is_used_than_there_was_over_any_crash(
    left: int, batch: list[str], side_by_side: bool, lasts: int, crashes: list[tuple[int, bool]]
) -> None:
    """As many decisions by the grant as were taken, never more than there were; all others ask people.

    What it decided and what then did not start is given back, once.
    """
    arguments: dict[str, dict[str, Any]] = {
        "shell.run": {"command": "c"},
        "report.write": {"name": "n"},
        "fx.read": {"a": 1},
    }

    async def root(action: Action, ctx: Context) -> list[Step]:
        await ctx.gather(*(ctx.call(Action(name, arguments[name]), key=f"k{n}") for n, name in enumerate(batch)))
        return []

    world, meter = World(), Counter({GRANT: left})
    asked = says("", *(call(name, **arguments[name]) for name in batch))
    registry = program(world, root) if side_by_side else site([asked, says("Done.")], world.tools())[0]
    ledger, used, returned, keeper = EMPTY, list[str](), list[str](), Ending(lasts=lasts)

    async def play() -> Ledger:
        nonlocal ledger
        points = [CrashPoint(*crash) for crash in crashes]
        for _ in range(40):
            if end_of(ledger) is not None:
                break
            journal = Meter(ledger, points.pop(0) if points else None, meter)
            policy: dict[str, Any] = {"policy": "root", "payload": {}} if side_by_side else {}
            with suppress(Crash):
                await carry_on(registry, ledger, journal=journal, gatekeeper=keeper, start=True, **policy)
            ledger = journal.ledger
            used.extend(journal.used)
            returned.extend(journal.given_back)
            check(journal)
            if View(ledger).paused():
                for path in open_gates(ledger):
                    word = "it_did_not" if "card" in path else "approve"
                    ledger = decide(ledger, path, word)
        return ledger

    asyncio.run(play())
    assert end_of(ledger) is not None
    by_grant = [path for path, by in decided_by(ledger).items() if by == GRANT]
    gates = [step.path for step in ledger if step.path.endswith("/human") and step.type == "action_call"]
    started = {step.path for step in ledger if step.type == "action_start"}
    unstarted = [path for path in by_grant if path.removesuffix("/human") not in started]
    assert len(returned) == len(unstarted)
    assert len(by_grant) == len(used) <= left + len(returned)
    assert meter[GRANT] == left - len(used) + len(returned)
    assert len(gates) == batch.count("shell.run")


async def test_a_call_of_a_program_is_asked_about_as_one_of_that_program(world: World) -> None:
    """What was granted to the agent itself is not granted to a program, nor to an agent that a program calls."""
    heard = list[tuple[str, ...]]()

    class Hearing(Granting):
        async def decide(self, tool: Tool, call: ToolCall[Any], asked: Asked) -> GateVerdict:
            heard.append(asked.callers)
            return GateVerdict("allow", GRANT)

    async def root(action: Action, ctx: Context) -> list[Step]:
        own = ctx.call(Action("shell.run", {"command": "a"}), key="own")
        await ctx.gather(own, ctx.call(Action("agent", {"text": "go"}), key="other"))
        return []

    registry, _ = site([says("", call("shell.run", command="b")), says("Done.")] * 2, world.tools())
    registry.register("root")(root)
    registry.register("shell.run")(next(as_policy(tool) for tool in world.tools() if tool.name == "shell.run"))
    await carry_on(registry, policy="root", payload={}, gatekeeper=Hearing())
    await carry_on(registry, gatekeeper=Hearing())
    assert sorted(heard) == [("agent",), ("root",), ("root", "agent")]


async def test_a_turn_that_is_stopped_with_a_decision_in_hand_leaves_no_gate_open(world: World) -> None:
    """What the decision uses is gone when the turn's end is recorded: its gate is closed, and nothing is used."""
    registry, _ = site(TWO, world.tools())
    journal = Meter()

    class Stopping(Granting):
        async def decide(self, tool: Tool, call: ToolCall[Any], asked: Asked) -> GateVerdict:
            run.stop(Cancelled())
            return await super().decide(tool, call, asked)

    run = Run(registry, journal, Site(), gatekeeper=Stopping())
    await run.run_turn("agent", {"text": "go"})
    assert (end_of(journal.ledger) or {})["state"] == "cancelled"
    assert View(journal.ledger).open_gates() == []
    assert set(decided_by(journal.ledger).values()) == {"system"}
    assert (journal.used, world.done) == ([], [])
