"""Random programs of policies, as people may write them, are durable: wherever they crash, they end as undisturbed."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from zlib import crc32

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agents.engine import Ledger, text
from agents.engine.deciding import answer, approve, reject
from agents.engine.ledger import EMPTY
from agents.engine.limits import Limits
from agents.engine.view import View
from conversations.verification.rules import problems_of
from tests.budget import examples, share
from tests.engine.journals import Crash, CrashingJournal, CrashPoint
from tests.engine.programs import (
    DECORATORS,
    HELPERS,
    PAYLOADS,
    Ask,
    Call,
    Change,
    Done,
    Emit,
    Fail,
    Gather,
    Invoke,
    Look,
    Part,
    Pass,
    Program,
    Result,
    Say,
    Stage,
)
from tests.engine.shortly import WAYS, Short, answered
from tests.engine.support import carry_on, decide, end_of, open_gates
from tests.judge import differences

KEYS = st.sampled_from([None, None, "a", "b", "1"])
WRAPPED = st.sampled_from([(), (), ("loop", "invoke"), ("invoke", "loop"), ("invoke",), ("loop",)])
DECISIONS = st.lists(st.sampled_from(["approve", "edit", "reject", "expired"]), min_size=1, max_size=3).map(tuple)
LONGEST = 60
"""The most records of a program that is tried, and of the runs of its policies."""


def _calls(names: list[str]) -> st.SearchStrategy[Call]:
    offered = st.just(frozenset(names)) | st.frozensets(st.sampled_from(names))
    parts = [name for name in names if name not in HELPERS]
    return st.builds(Call, st.sampled_from([*names, *parts, *parts]), KEYS, WRAPPED, offered, st.booleans())


def _acts(names: list[str], depth: int = 1) -> st.SearchStrategy[tuple[object, ...]]:
    calls = _calls(names)
    shorts = st.builds(Short, st.sampled_from(WAYS), KEYS)
    acts = [
        calls.map(lambda call: (call,)),
        shorts.map(lambda short: (short,)),
        st.builds(lambda call, only: (call, Invoke(only)), calls, st.booleans()),
        st.lists(calls | shorts, min_size=2, max_size=3).map(lambda several: (Gather(tuple(several)),)),
        st.sampled_from([(Ask(),), (Change(),)]),
    ]
    if depth:
        ways = st.lists(_acts(names, 0) | st.just((Fail(),)), min_size=2, max_size=2).map(tuple)
        looks = st.builds(Look, st.sampled_from(["number", "types", "value"]), ways, st.booleans())
        acts.append(looks.map(lambda look: (look,)))
    return st.lists(st.one_of(acts), min_size=1, max_size=3).map(lambda drawn: sum(drawn, ()))


def _says(names: list[str]) -> st.SearchStrategy[tuple[object, ...]]:
    emits = st.builds(Emit, st.sampled_from(names), st.sampled_from(["assistant", "model", "itself"]))
    said = st.one_of(
        emits,
        emits,
        st.builds(Say, st.sampled_from(["", "uuid", "number"])),
        st.builds(Pass, st.sampled_from(["heard", "given"]), st.sampled_from([None, 1, 2])),
    )
    result = st.sampled_from([None, Done()]) | st.builds(Result, st.sampled_from(sorted(PAYLOADS)))
    return st.tuples(st.lists(said, max_size=3), result).map(lambda drawn: (*drawn[0], *filter(None, drawn[1:])))


def _parts(number: int) -> st.SearchStrategy[tuple[Part, ...]]:
    names = [[*(f"part{later}" for later in range(each + 1, number)), *HELPERS] for each in range(number)]
    return st.tuples(*(st.builds(Part, _acts(each), _says(each), WRAPPED) for each in names))


PROGRAMS = st.builds(Program, st.one_of(_parts(1), _parts(2), _parts(3), _parts(3)), DECISIONS)
CRASHES = st.lists(st.lists(st.tuples(st.integers(0, LONGEST), st.booleans()), min_size=1, max_size=2), max_size=6)
"""Runs, each with the records before or after which it crashes: one, or one and then another."""
BOTH = ("loop", "invoke")
EVERYTHING = {
    "calls": Program(
        (
            Part(
                (
                    Change(),
                    Call("part1", "a"),
                    Call("errand", "a"),
                    Gather((Call("look", "b"), Call("once"), Call("part1", "c", tells=True), Call("touch", "b"))),
                    Look("number", ((Call("part2", "d"),),)),
                    Call("asks"),
                    Invoke(),
                    Look("types", ((Call("missing"), Call("part3")),), True),
                ),
                (Say("number"), Pass("heard", 1)),
            ),
            Part((Call("look"), Look("value", ((Call("touch"),),))), (Say("uuid"), Pass("given", 1), Emit("errand"))),
            Part((Look("number", ((),), True),), (Emit("once", "itself"), Emit("nobody"), Result("output"))),
            Part((Call("errand"), Look("value", ((Fail(),),), True)), (Say(),)),
        )
    ),
    "people": Program(
        (
            Part(
                (
                    *(Call("gated", key) for key in "abdf"),
                    Look("types", ((Ask(), Call("once")),)),
                    Gather((Call("part1"), Call("gated"))),
                ),
                (Say(), Pass("heard")),
            ),
            Part((Ask(), Call("gated")), (Say(), Emit("gated", "model"))),
        ),
        ("approve", "edit", "reject", "expired"),
    ),
    "decorated": Program(
        (
            Part((Call("part1", None, BOTH, frozenset({"part3"})), Call("part2")), (Pass("given"),), BOTH),
            Part((Call("errand"),), (Say("uuid"), Emit("part3"), Emit("look")), ("invoke",)),
            Part((Call("part3", None, ("invoke", "loop"), frozenset({"once", "gated"}), tells=True),), (), ("loop",)),
            Part((Invoke(only_offered=True),), (Say(), Emit("once"), Emit("gated"), Pass("given", 2))),
        )
    ),
    "short": Program(
        (
            Part(
                (
                    *(Short(way) for way in WAYS),
                    Gather((Short("agent", "a"), Short("random"), Short("fill in", "b"), Short("gated"))),
                    Call("part1"),
                    Short("show", "a"),
                ),
                (Done(),),
            ),
            Part((Short("agent with a form"), Short("choose", "a"), Short("file"), Short("now")), (Say(), Done())),
        ),
        ("approve", "edit", "reject"),
    ),
    "results": Program(
        (
            Part(tuple(Call(f"part{number}") for number in range(1, 5)), (Pass("heard"), Say(), Result("own"))),
            *(Part(says=(Say(), Result(payload))) for payload in ("none", "status", "error", "output")),
        )
    ),
}
"""Programs that together do each thing a program can do."""
DOES = {
    *("Gather", "Ask", "Invoke", "Look", "Change", "Fail"),
    *("call a part", *(f"call {name}" for name in HELPERS), "call with a key", "call with a ledger", "use a key again"),
    *(f"{name} {where}" for name in DECORATORS for where in ("on a definition", "in a call")),
    *(f"look {awaited}at the {what}" for awaited in ("", "and wait ") for what in ("number", "types", "value")),
    *("invoke a call", "ask for what is offered", "ask for what is not offered"),
    *("say with no id", "say with uuid", "say with number", *(f"result {name}" for name in PAYLOADS)),
    *(f"pass on {what}{part}" for what in ("heard", "given") for part in ("", " in part")),
    *("approve", "edit", "reject", "expired", "answer", "ask again"),
    *("Short", "done", *(f"shortly {way}" for way in WAYS)),
}


class Played:
    """A program that was played to its end, with a crash at each of these records in turn: its stage and its ledger."""

    def __init__(self, program: Program, *crashes: CrashPoint) -> None:
        self.stage = Stage(program)
        self.cards = Counter[str]()
        self.records = 0
        self.ledger = asyncio.run(self._play(list(crashes)))

    async def _play(self, crashes: list[CrashPoint]) -> Ledger:
        ledger, registry = EMPTY, self.stage.registry()
        while end_of(ledger) is None:
            self.stage.finished = {step.path: step.value for step in ledger if step.type == "action_result"}
            journal = CrashingJournal(ledger, crashes[0] if crashes else None)
            with suppress(Crash):
                await carry_on(
                    registry,
                    ledger,
                    policy="part0",
                    payload=PAYLOAD,
                    journal=journal,
                    actions=OFFERED,
                    limits=Limits(rounds=1000),
                )
            self.records += len(journal.records)
            crashes = crashes[1:] if journal.dead else crashes
            ledger = journal.ledger
            if View(ledger).paused():
                ledger = self._decided(ledger)
        return ledger

    def _decided(self, ledger: Ledger) -> Ledger:
        """The ledger after everybody who is asked has decided, at each gate the same in every run."""
        for gate in open_gates(ledger):
            asked = View(ledger).call(gate)
            assert asked
            payload = asked.payload["payload"]
            ask, decided, chance = payload["ask"], self.stage.program.decided, crc32(gate.encode())
            said = decided[chance % len(decided)]
            self.stage.did[said if ask == "approve" else "answer"] += ask != "interrupted"
            self.stage.did["ask again"] += "draft" in payload
            if ask == "interrupted":
                self.cards[gate.rpartition("/")[0]] += 1
                ledger = answer(ledger, gate, by="user:7", answer="run_again")
            elif said == "expired":
                ledger = decide(ledger, gate, said, by="system")
            elif ask == "question":
                ledger = answer(ledger, gate, by="user:7", answer=answered(payload, said, chance))
            elif said == "reject":
                ledger = reject(ledger, gate, by="user:7", reason="Not today.")
            else:
                edited = {"name": "edited"} if said == "edit" and "tool" in payload else None
                ledger = approve(ledger, gate, by="user:7", input=edited)
        return ledger


OFFERED = frozenset({"part1", "errand", "look", "once", "gated"})
"""What a root that is decorated runs of what it asks for."""
PAYLOAD = {"name": "root", "list": [0], "ledger": Ledger((text("user", "Go on, then."),))}


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_program_ends_as_undisturbed_wherever_it_crashes(name: str) -> None:
    """Before and after its records; with cards about the tools that were interrupted."""
    undisturbed, cards = Played(EVERYTHING[name]), 0
    points = [CrashPoint(n, after) for n in range(1, undisturbed.records + 1) for after in (False, True)]
    for point in share(points, of=3):  # before and after by turns
        crashed = Played(EVERYTHING[name], point)
        ends_the_same(crashed, undisturbed)
        cards += crashed.cards.total()
    assert bool(cards) is (name != "results")


def test_these_programs_do_everything() -> None:
    """Nothing that a program can do is left out of them."""
    assert {what for program in EVERYTHING.values() for what in +Played(program).stage.did} == DOES


@given(PROGRAMS, CRASHES)
@settings(max_examples=examples(60))
def test_so_does_any_program(program: Program, crashes: list[list[tuple[int, bool]]]) -> None:
    """S107, S110, S112..S114, S118..S120, S127, S129: of anything that people may write."""
    undisturbed = Played(program)
    assume(undisturbed.records <= LONGEST)
    for points in crashes:
        crashed = Played(program, *(CrashPoint(n % undisturbed.records + 1, after) for n, after in points))
        ends_the_same(crashed, undisturbed)


def ends_the_same(crashed: Played, undisturbed: Played) -> None:
    """The same ledger; no call with a result ran again, and no tool more often than it may."""
    side_by_side = "Gather" in undisturbed.stage.did
    assert differences(crashed.ledger, undisturbed.ledger, side_by_side=side_by_side) == []
    assert problems_of(crashed.ledger) == []
    assert crashed.stage.repeated == []
    assert [step for step in crashed.ledger if step.payload.get("code") == "payload_changed"] == []
    view = View(crashed.ledger)
    for path, times in crashed.stage.ran.items():
        call = view.call(path)
        assert call
        if call.payload["policy"] in ("once", "gated"):
            assert times <= 1 + crashed.cards[path]


def test_random_programs_do_everything() -> None:
    """None of it is only said to be tried."""
    did = set[str]()

    @given(PROGRAMS)
    @settings(max_examples=150)
    def play(program: Program) -> None:
        did.update(+Played(program).stage.did)

    play()
    assert did == DOES
