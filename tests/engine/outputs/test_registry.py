"""Kinds of output from apps: one registration sets the fold, what a model is told and what redaction keeps (S5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from agents.engine.agent.projection import CallIds, turn_messages
from agents.engine.errors import RegistryError
from agents.engine.interfaces.messages import AssistantMessage, ResultMessage, UserMessage
from agents.engine.interfaces.services import PastTurn
from agents.engine.ledger import EMPTY, Ledger, Step, action_call, action_result
from agents.engine.limits import Limits
from agents.engine.outputs.events import EventFold
from agents.engine.outputs.kinds import Output, TextOutput
from agents.engine.outputs.registry import BUILT_IN, load_output, register_output, unregister_output
from agents.engine.outputs.timeline import Outputs
from agents.engine.tools.tool import Risk, Tool, ToolCall, tool
from tests.engine.cast import Name, World, site
from tests.engine.journals import numbered
from tests.engine.sound import problems
from tests.engine.support import ScriptedProvider, call, carry_on, results_in, says


class Chart(Output):
    points: list[int]


@pytest.fixture
def register() -> Iterator[Callable[..., None]]:
    """`register_output("chart", Chart, ...)`, for one test."""
    registered = False

    def register(**how: object) -> None:
        nonlocal registered
        register_output("chart", Chart, **how)  # type: ignore[arg-type]
        registered = True

    yield register
    if registered:
        unregister_output("chart")


def charts(*points: list[int]) -> Ledger:
    """A call that emits a chart for each list of points."""
    steps = [
        Step("model", "action_call", action_call("model", "fx.read").payload, path="1/0"),
        *[Step("tool:fx.read", "chart", {"points": each}, path="1/0") for each in points],
        Step("tool:fx.read", "action_result", action_result("tool:fx.read", "ok").payload, path="1/0"),
    ]
    return EMPTY.extend(numbered(EMPTY, steps))


def drawn(ledger: Ledger) -> list[list[int]]:
    return [output.points for output in Outputs(ledger).in_order() if isinstance(output, Chart)]


def test_every_step_of_the_kinds_name_opens_an_output(register: Callable[..., None]) -> None:
    """A variant and nothing else: the loop does not change for it."""
    register()
    first = Outputs(charts([1, 2], [3])).in_order()[1]
    assert first == Chart(
        type="chart", path="1/0", position=2, parent="1/0", created_at=first.created_at, points=[1, 2]
    )
    assert load_output(first.model_dump(mode="json")) == first
    assert drawn(charts([1, 2], [3])) == [[1, 2], [3]]


def test_a_name_has_one_owner(register: Callable[..., None]) -> None:
    register()
    with pytest.raises(RegistryError, match=r"registered twice: tests\.\S+\.Chart and agents\.\S+\.TextOutput"):
        register_output("chart", TextOutput)
    for name in BUILT_IN:
        with pytest.raises(RegistryError, match="registered twice"):
            register_output(name, Chart)


@pytest.mark.parametrize("name", ["action_call", "action_result", "state", "note", "pause"])
def test_the_records_own_steps_are_no_kinds(name: str) -> None:
    """A tool emits steps of its kinds: it could write a result, or a plugin's state, in another's name."""
    with pytest.raises(RegistryError, match="step type of the ledger itself"):
        register_output(name, Chart)


def test_only_a_field_can_stay(register: Callable[..., None]) -> None:
    with pytest.raises(RegistryError, match="no field 'colour'"):
        register(stays=["points", "colour"])


def test_a_payload_that_no_longer_fits_its_kind_does_not_raise(register: Callable[..., None]) -> None:
    """The kind has changed since: a bare output takes its place, both in the fold and when loaded."""
    register(told=lambda chart: f"[chart {chart.points}]")
    ledger = charts("old")  # type: ignore[arg-type]
    output = Outputs(ledger).in_order()[1]
    assert type(output) is Output
    assert load_output({**output.model_dump(mode="json"), "points": "old"}) == output
    assert told(ledger) == ["ok"]


def test_what_was_recorded_stays_readable_when_the_kind_is_gone() -> None:
    stored = Chart(type="chart", path="1/0", position=2, points=[1]).model_dump(mode="json")
    assert load_output(stored) == Output(type="chart", path="1/0", position=2)
    assert [output.type for output in Outputs(charts([1])).in_order()] == ["tool"]


# A rule of its own


def growing(chart: Chart | None, step: Step) -> Chart:
    """One chart for each call, to which every step adds."""
    if chart is None:
        return Chart.opened_by(step)
    return chart.model_copy(update={"points": [*chart.points, *step.payload["points"]]})


def test_a_rule_of_its_own_changes_the_output_of_the_same_call(register: Callable[..., None]) -> None:
    register(fold=growing)
    ledger = charts([1], [2, 3])
    assert drawn(ledger) == [[1, 2, 3]]
    told = EventFold(1, 1)
    events = [(event.type, event.seq) for step in ledger for event in told.add(step)]
    assert events[1:3] == [("output.created", 2), ("output.updated", 3)]


def test_a_call_of_its_own_opens_an_output_of_its_own(register: Callable[..., None]) -> None:
    register(fold=growing)
    more = [Step(s.actor, s.type, s.payload, path="1/1") for s in charts([4])]
    assert drawn(EMPTY.extend(numbered(EMPTY, [*charts([1], [2]), *more]))) == [[1, 2], [4]]


def elsewhere(chart: Chart | None, step: Step) -> Chart:
    return Chart(type="chart", path=step.path, position=1, points=[])


def test_a_text_that_does_not_fit_stands_beside_the_one_before_it() -> None:
    said = [Step("model", "text", {"text": text}, path="1") for text in ("Hello.", 7)]
    first, second = Outputs(numbered(EMPTY, said)).in_order()
    assert (type(first), type(second)) == (TextOutput, Output)


@pytest.mark.parametrize("rule", [lambda chart, step: 1 / 0, elsewhere, lambda chart, step: "a chart"])
def test_a_rule_that_fails_does_not_make_the_fold_raise(
    register: Callable[..., None], rule: object, caplog: pytest.LogCaptureFixture
) -> None:
    """A bare output takes the place of the one it would have opened; no other output changes."""
    register(fold=rule)
    entry, chart = Outputs(charts([1])).in_order()
    assert (entry.type, entry.position) == ("tool", 1)
    assert (type(chart), chart.type, chart.position) == (Output, "chart", 2)
    assert "'chart' failed at step 2" in caplog.text


# What a model is told


def told(*ledgers: Ledger) -> list[str]:
    """What a later turn's model reads as the last result of this one: its texts."""
    outputs = Outputs(step for ledger in ledgers for step in ledger).in_order()
    messages = turn_messages(PastTurn(3, "Hi.", outputs), CallIds(), Limits())
    assert problems(messages) == []
    user, asked, *results = messages
    assert isinstance(user, UserMessage)
    assert isinstance(asked, AssistantMessage)
    assert isinstance(results[-1], ResultMessage)
    return list(results[-1].texts)


def words(chart: Chart) -> str | None:
    return f"[chart {chart.points}]" if chart.points else None


def test_a_later_turn_is_told_with_the_result_of_the_call(register: Callable[..., None]) -> None:
    register(told=words)
    assert told(charts([1], [], [2])) == ["ok", "[chart [1]]", "[chart [2]]"]


def test_without_words_a_model_is_told_nothing(register: Callable[..., None]) -> None:
    register()
    assert told(charts([1])) == ["ok"]


@pytest.mark.parametrize("fails", [lambda chart: chart.colour, lambda chart: chart.points])
def test_words_that_fail_are_left_out(
    register: Callable[..., None], fails: object, caplog: pytest.LogCaptureFixture
) -> None:
    register(told=fails)
    assert told(charts([1])) == ["ok"]
    assert "told nothing of the output 'chart' at 1/0" in caplog.text


def drawing(world: World) -> list[Tool]:
    @tool("chart.draw", risk=Risk.READ)
    async def draw(call: ToolCall[Name]) -> str:
        """Draw a chart."""
        call.emit("chart", {"points": [1, 2]})
        return f"drew {call.input.name}"

    return [*world.tools(), draw]


async def test_the_next_round_is_told_with_the_result_of_each_call(world: World, register: Callable[..., None]) -> None:
    """What a call emitted stands with its own result, in the order in which it emitted it, files and others (R21)."""
    register(told=words)
    batch = [call("chart.draw", name="a"), call("report.write", name="q"), call("touch", name="t")]
    provider = ScriptedProvider([says("", *batch), says("Done.")])
    await carry_on(site(provider, drawing(world))[0])
    assert results_in(provider.asked[1]) == [
        "drew a\n\n[chart [1, 2]]",
        "wrote q\n\n[file a.txt] S",
        "touched t",
    ]


async def test_words_that_fail_do_not_break_the_turn(world: World, register: Callable[..., None]) -> None:
    register(told=lambda chart: 1 / 0)
    provider = ScriptedProvider([says("", call("chart.draw", name="a")), says("Done.")])
    await carry_on(site(provider, drawing(world))[0])
    assert results_in(provider.asked[1]) == ["drew a"]
