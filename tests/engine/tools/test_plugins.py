"""Plugins: they prepare every round from scratch, keep typed state, and add tools and context."""

import asyncio
import types
from typing import Any, Generic, TypeVar

import pytest
from pydantic import BaseModel

from agents.engine.errors import RegistryError
from agents.engine.outputs.kinds import ToolOutput
from agents.engine.tools.plugin import Plugin, Round
from agents.engine.tools.state import Nothing
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.engine.view import View
from tests.engine.cast import Counted, Counting, Number, World, site
from tests.engine.journals import Crash, CrashingJournal, CrashPoint
from tests.engine.support import call, carry_on, decide, lines, results_in, says

THREE = [says("", call("fx.read", a=1)), says("", call("shell.run", command="x")), says("Done.")]


def counted(ledger: Any) -> list[int]:
    return [step.payload["value"]["prepared"] for step in ledger if step.type == "state"]


async def test_every_plugin_prepares_every_round_also_after_a_pause(world: World) -> None:
    """What round N changes, round N+1 sees; the system message is the prompt and the context items (S16, S17, S19)."""
    registry, provider = site(THREE, world.tools(), [Counting()], prompt="Base.")
    ledger = await carry_on(registry, decide(await carry_on(registry), "2/0/human"))
    assert [request.system for request in provider.asked] == [f"Base.\n\nprepared {n}, added 0" for n in (1, 2, 3)]
    assert counted(ledger) == [1, 2, 3]


@pytest.mark.parametrize("after", [False, True])
async def test_a_counter_in_prepare_counts_once_per_round_over_any_crash(after: bool) -> None:
    """A round that is prepared again starts from the state it began with, and what that writes is dropped."""
    for n in range(1, 10):
        world = World()
        registry, provider = site(THREE, world.tools(), [Counting()])
        journal = CrashingJournal(crash=CrashPoint(n, after))
        ledger = journal.ledger
        for _ in range(4):
            try:
                ledger = await carry_on(registry, ledger, journal=journal)
            except Crash:
                ledger = journal.ledger
            ledger = decide(ledger, "2/0/human") if View(ledger).paused() else ledger
            journal = CrashingJournal(ledger)
        assert counted(ledger) == [1, 2, 3], n
        assert provider.asked[-1].system.endswith("prepared 3, added 0"), n


async def test_a_recorded_round_is_never_prepared_again(world: World) -> None:
    """Its answer stands; only a round with open calls is prepared again, for its tools."""
    prepared: list[int] = []

    class Watching(Plugin):
        name = "watching"

        async def prepare(self, round: Round) -> None:
            prepared.append(round.number)

    registry, _ = site(THREE, world.tools(), [Watching()])
    waiting = await carry_on(registry)
    assert prepared == [1, 2]
    prepared.clear()
    await carry_on(registry, decide(waiting, "2/0/human"))
    assert prepared == [2, 3]


async def test_a_round_that_is_prepared_again_knows_the_state_that_its_answer_left(world: World) -> None:
    """Whatever its calls have changed since; it begins with the state that it began with."""
    seen: list[tuple[int, Any]] = []

    class Watching(Counting):
        async def prepare(self, round: Round) -> None:
            seen.append((round.state(self).prepared, round.state_when_answered(self)))
            assert round.open_calls == (frozenset({"shell.run"}) if seen[-1][1] else frozenset())
            await super().prepare(round)

    both = says("", call("count.add", a=4), call("shell.run", command="x"))
    registry, _ = site([both, says("Done.")], world.tools(), [Watching()])
    await carry_on(registry, decide(await carry_on(registry), "1/1/human"))
    assert seen == [(0, None), (0, Counted(prepared=1)), (1, None)]


async def test_a_tool_changes_its_plugins_state_in_the_record_of_its_result(world: World) -> None:
    """The state step stands in the same record, and the next round sees it (S40)."""
    registry, provider = site([says("", call("count.add", a=4)), says("Done.")], world.tools(), [Counting()])
    journal = CrashingJournal()
    await carry_on(registry, journal=journal, states={"counting": {"prepared": 10, "added": 1}})
    record = next(r for r in journal.records if "1/0 action_result" in lines(r.steps))
    assert lines(record.steps)[:2] == ["1/0 state", "1/0 action_result"]
    assert record.steps[0].payload == {"plugin": "counting", "value": {"prepared": 11, "added": 5}}
    assert provider.asked[1].system.endswith("prepared 12, added 5")


async def test_a_tool_with_plugin_state_runs_alone(world: World) -> None:
    """Two that add do not overwrite each other; a plain READ runs beside its neighbours only."""
    at_once, most = [0], [0]

    def begins(_: Any) -> Any:
        async def wait() -> None:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
            for _ in range(5):
                await asyncio.sleep(0)
            at_once[0] -= 1

        return wait()

    world.at["count.add"] = begins
    batch = says("", call("count.add", a=1), call("count.add", a=2), call("count.add", a=3))
    registry, provider = site([batch, says("Done.")], world.tools(), [Counting()])
    await carry_on(registry)
    assert most == [1]
    assert results_in(provider.asked[1]) == ["1", "3", "6"]


async def test_state_with_lists_inside_is_kept_when_changed_in_place() -> None:
    """A plugin may change what its state holds however deep; the ledger's own copy stays."""

    class ByTopic(BaseModel):
        by_topic: dict[str, Any] = {}

    class Notes(Plugin[ByTopic]):
        name = "notes"

        async def prepare(self, round: Round) -> None:
            state = round.state(self)
            state.by_topic.setdefault("rounds", []).append(round.number)

    @tool("nothing", risk=Risk.READ)
    async def nothing(call: ToolCall[Number]) -> None: ...

    registry, _ = site([says("", call("nothing", a=1)), says("Done.")], [nothing], [Notes()])
    ledger = await carry_on(registry)
    kept = [step.payload["value"]["by_topic"]["rounds"] for step in ledger if step.type == "state"]
    assert kept == [[1], [1, 2]]


async def test_a_state_that_could_not_be_read_again_is_not_kept(world: World) -> None:
    """What a plugin makes of its state in `prepare` is checked: a note says that the old one stays (S40)."""

    class Slips(Counting):
        async def prepare(self, round: Round) -> None:
            await super().prepare(round)
            state: Any = round.state(self)
            state.added = "many" if round.number == 2 else state.added

    registry, _ = site(THREE[:1] * 2 + THREE[2:], world.tools(), [Slips()])
    ledger = await carry_on(registry)
    assert counted(ledger) == [1, 2]
    (note,) = (step for step in ledger if step.type == "note")
    assert (note.path, note.payload["code"]) == ("2", "state_refused")
    assert note.payload["message"].startswith("The plugin 'counting' left a state that it could not read again: ")


async def test_a_state_of_another_version_begins_anew(world: World) -> None:
    """What today's version refuses becomes the defaults, once and with a note; the conversation goes on (S40)."""
    registry, _ = site(THREE[:1] + THREE[2:], world.tools(), [Counting()])
    ledger = await carry_on(registry, states={"counting": {"prepared": "often", "added": 1}})
    assert counted(ledger) == [1, 2]
    assert [(note.path, note.payload["code"]) for note in ledger if note.type == "note"] == [("1", "state_reset")]


async def test_a_plugin_pushes_tools_for_this_round_only(world: World) -> None:
    """Tools are rebuilt from nothing each round; a call of one that is gone is an unknown tool (S16, S42)."""

    class First(Plugin):
        name = "first"

        async def prepare(self, round: Round) -> None:
            if round.number == 1:
                round.tools.extend(world.tools()[:1])

    registry, provider = site([says("", call("fx.read", a=1))] * 2 + [says("Done.")], (), [First()])
    await carry_on(registry)
    assert [[t.name for t in request.tools] for request in provider.asked] == [["fx_read"], [], []]
    assert results_in(provider.asked[2]) == [
        "read 1",
        "Error (unknown_tool): No tool 'fx_read'. Call tools by the names that you were given.",
    ]


@tool("basket.order", risk=Risk.WRITE, approval=False, offered=False)
async def order(call: ToolCall) -> str:
    """Order what was read."""
    return "ordered"


async def test_a_plugin_unlocks_a_tool_by_what_has_happened(world: World) -> None:
    """`round.outputs` is this turn so far: a tool's time comes once its plugin has seen a call succeed (S67)."""
    seen: list[list[str]] = []

    class Unlocking(Plugin):
        name = "unlocking"

        async def prepare(self, round: Round) -> None:
            seen.append([output.type for output in round.outputs])
            calls = [output for output in round.outputs if isinstance(output, ToolOutput)]
            if any(each.tool == "report.write" and each.result.type == "success" for each in calls):
                round.tools.append(order)

    asks = [says("I write.", call("report.write", name="r")), says("", call("basket.order")), says("Done.")]
    registry, provider = site(asks, world.tools(), [Unlocking()])
    await carry_on(registry)
    assert ["basket_order" in [tool.name for tool in request.tools] for request in provider.asked] == [
        False,
        True,
        True,
    ]
    written = ["text", "tool", "file", "widget"]
    assert seen == [[], written, [*written, "tool"]]
    assert results_in(provider.asked[2]) == ["wrote r\n\n[file a.txt] S", "ordered"]


async def test_a_round_that_is_prepared_again_sees_what_had_happened_before_it(world: World) -> None:
    """Its own answer and calls stand in the ledger by then; a plugin that counts outputs counts the same."""
    counts: list[tuple[int, int]] = []

    class Watching(Plugin):
        name = "watching"

        async def prepare(self, round: Round) -> None:
            counts.append((round.number, len(round.outputs)))

    registry, _ = site(THREE, world.tools(), [Watching()])
    await carry_on(registry, decide(await carry_on(registry), "2/0/human"))
    assert counts == [(1, 0), (2, 1), (2, 1), (3, 2)]


async def test_a_plugin_reads_the_state_of_another_and_cannot_write_it(world: World) -> None:
    """It sees what those before it changed; what it does to its copy is nothing (S18)."""
    read: list[int] = []

    class Reading(Plugin):
        name, order = "reading", 200

        async def prepare(self, round: Round) -> None:
            other: Counted = round.state_of("counting")
            read.append(other.prepared)
            other.prepared += 100

    registry, _ = site(THREE[:1] + THREE[2:], world.tools(), [Reading(), Counting()])
    ledger = await carry_on(registry, states={"counting": {"prepared": 4, "added": 0}})
    assert (read, counted(ledger)) == ([5, 6], [5, 6])

    class Early(Reading):
        name, order = "early", 1

    registry, _ = site(THREE[2:], world.tools(), [Early(), Counting()])
    read.clear()
    await carry_on(registry, states={"counting": {"prepared": 4, "added": 0}})
    assert read == [4]


async def test_a_plugin_that_is_not_there_is_named_with_those_that_are(world: World) -> None:
    class Reading(Plugin):
        name = "reading"

        async def prepare(self, round: Round) -> None:
            round.state_of("basket")

    registry, _ = site(THREE, world.tools(), [Reading(), Counting()])
    with pytest.raises(RegistryError, match="no plugin 'basket'; there are: counting, reading"):
        await carry_on(registry)


async def test_a_plugin_that_pushes_what_is_offered_anyway_is_told_so(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Once in a process; a tool whose time it is, and one that is put back where it was taken out, are its business."""

    class Pushing(Plugin):
        name = "pushing.test"

        async def prepare(self, round: Round) -> None:
            round.tools += [order, *(tool for tool in round.tools if tool.name == "touch")]

    class TakingOut(Plugin):
        name, order = "taking.out", 300

        async def prepare(self, round: Round) -> None:
            self_taken = [tool for tool in round.tools if tool.name == "pay"]
            round.tools = [tool for tool in round.tools if tool.name != "pay"]
            round.tools += self_taken

    registry, provider = site([*THREE[:1], says("Done.")], world.tools(), [Pushing(), TakingOut()])
    await carry_on(registry)
    assert len(provider.asked) == 2
    assert [record.message for record in caplog.records if "offered anyway" in record.message] == [
        "the plugin 'pushing.test' adds the tool 'touch', which every round is offered anyway: declare it with"
        " offered=False"
    ]


def test_a_plugin_says_its_state_once_also_through_a_base_of_its_own() -> None:
    State = TypeVar("State", bound=BaseModel)
    Other = TypeVar("Other")

    class Remembering(Plugin[State], Generic[Other, State]): ...

    class First(Remembering[int, Counted]): ...

    class Second(First): ...

    class Plain(Plugin): ...

    assert [each.state_model for each in (First, Second, Plain)] == [Counted, Counted, Nothing]
    with pytest.raises(RegistryError, match="must be a pydantic model: <class 'dict'>"):
        types.new_class("Wrong", (Plugin[dict],))  # type: ignore[type-arg, type-var]


def test_a_tool_whose_call_has_another_state_than_its_plugin_is_refused() -> None:
    """Found when the tool is declared, not when it runs."""

    def adds(call: ToolCall[Number, Counted]) -> None: ...

    for wrong, told in (({"plugin": Basket}, "that of its plugin, Lines"), ({}, "none, as it declares no plugin")):
        with pytest.raises(RegistryError, match=f"basket.add: the state of its call is {told}, not "):
            tool("basket.add", **wrong)(adds)  # type: ignore[arg-type]
    assert tool("basket.add", plugin=Counting)(adds).plugin is Counting


class Lines(BaseModel):
    lines: dict[str, int] = {}


class Basket(Plugin[Lines]):
    name = "basket"


async def test_plugins_prepare_in_order_and_a_clash_of_tools_is_refused(world: World) -> None:
    """By order, then by name; two tools of one wire name stop the turn before the model is asked (R26)."""
    prepared: list[str] = []

    def plugin(named: str, number: int) -> Plugin:
        class Named(Plugin):
            name, order = named, number

            async def prepare(self, round: Round) -> None:
                prepared.append(self.name)

        return Named()

    registry, _ = site([says("Done.")], (), [plugin("b", 2), plugin("c", 1), plugin("a", 2)])
    await carry_on(registry)
    assert prepared == ["c", "a", "b"]

    @tool("fx_read", risk=Risk.READ)
    async def clashing(call: ToolCall[Number]) -> None: ...

    registry, provider = site([says("Done.")], [*world.tools(), clashing])
    told = r"two tools share the name 'fx_read', as a model sees it: 'fx\.read' in .* and 'fx_read' in "
    with pytest.raises(RegistryError, match=told):
        await carry_on(registry)
    assert provider.asked == []


async def test_a_round_that_is_prepared_again_begins_with_the_state_it_began_with(world: World) -> None:
    """So it pushes the tools that it pushed the first time, and its open calls find them."""

    class Fading(Counting):
        async def prepare(self, round: Round) -> None:
            await super().prepare(round)
            state = round.state(self)
            if state.prepared == 1:
                round.tools.extend(world.tools())

    registry, _ = site([says("", call("shell.run", command="x")), says("Done.")], (), [Fading()])
    await carry_on(registry, decide(await carry_on(registry), "1/0/human"))
    assert world.done == [("shell.run", "x")]
