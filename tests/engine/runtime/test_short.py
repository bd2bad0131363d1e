"""The short way: tools, agents, what people see and chance, each in one line, and each done once."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from agents import Action, Context, Output, Step, ToolError, policy, register_output
from agents.engine import Ledger
from agents.engine.errors import RegistryError
from agents.engine.execution.effect import as_policy
from agents.engine.ledger import EMPTY
from agents.engine.outputs.kinds import FileOutput, WidgetOutput
from agents.engine.outputs.registry import unregister_output
from agents.engine.outputs.timeline import Outputs
from agents.engine.runtime.policy import Policy, Registered
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.view import View
from conversations.verification.rules import problems_of
from tests.engine.cast import World, site
from tests.engine.journals import NOON, Crash, CrashingJournal, CrashPoint
from tests.engine.support import Site, carry_on, decide, end_of, lines, open_gates, says


def registry_of(program: Policy, world: World | None = None) -> PolicyRegistry:
    registry, _ = site([says("Done.")], (world or World()).tools())
    for each in (world or World()).tools():
        registry.register(each.name)(as_policy(each))
    registry.register("plan")(program)
    return registry


async def play(program: Policy, ledger: Ledger = EMPTY, world: World | None = None, **options: Any) -> Ledger:
    return await carry_on(registry_of(program, world), ledger, policy="plan", payload={}, **options)


def value_of(ledger: Ledger) -> Any:
    result = View(ledger).result("")
    assert result, lines(ledger)
    return result.value


async def test_a_tool_is_called_by_its_name_and_returns_its_value(world: World) -> None:
    """Its input is fields, or a whole: a dict or a pydantic model."""

    class Number(BaseModel):
        a: int

    async def plan(action: Action, ctx: Context) -> list[Step]:
        one = await ctx.tool("fx.read", a=1)
        two = await ctx.tool("fx.read", input={"a": 2})
        three = await ctx.tool("fx.read", key="third", input=Number(a=3))
        return ctx.done([one, two, three])

    ledger = await play(plan, world=world)
    assert value_of(ledger) == ["read 1", "read 2", "read 3"]
    assert [step.path for step in ledger if step.type == "action_call"] == ["", "1", "2", "third"]
    assert end_of(ledger) == {"output": value_of(ledger), "state": "completed", "stop_reason": "done"}
    assert problems_of(ledger) == []


async def test_a_tool_waits_for_people_as_if_a_model_asked(world: World) -> None:
    """Its gate stands below it; what people decide comes as its value, or as a ToolError with the code."""

    async def plan(action: Action, ctx: Context) -> list[Step]:
        said = []
        for command in ("ls", "rm", "pwd"):
            try:
                said.append((await ctx.tool("shell.run", command=command))["stdout"])
            except ToolError as error:
                said.append(f"{error.code}: {error.message}")
        return ctx.done(said)

    ledger = EMPTY
    for decided in ("approve", "reject", "expired"):
        ledger = await play(plan, ledger, world)
        gate = f"{len(world.done) + (decided == 'expired') + 1}/human"
        assert open_gates(ledger) == [gate]
        ledger = decide(ledger, gate, decided, by="system" if decided == "expired" else "user:7", reason="No.")
    ledger = await play(plan, ledger, world)
    assert value_of(ledger) == ["did ls\n", "rejected: No.", "expired: No."]
    assert world.done == [("shell.run", "ls")]
    assert problems_of(ledger) == []


async def test_what_fails_raises_its_error(world: World) -> None:
    """Whatever the reason: an invalid input, an unknown name, the tool itself."""

    async def plan(action: Action, ctx: Context) -> list[Step]:
        codes = []
        for name, fields in (("fx.read", {"b": 1}), ("no.such", {}), ("agent", {"text": "go", "rounds": "many"})):
            with pytest.raises(ToolError) as raised:
                await ctx.tool(name, input=fields)
            codes.append(raised.value.code)
        with pytest.raises(TypeError, match="as `input` or as fields"):
            await ctx.tool("fx.read", input={"a": 1}, a=1)
        with pytest.raises(TypeError, match="is not JSON"):
            await ctx.tool("fx.read", a=object())
        return ctx.done(codes)

    assert value_of(await play(plan, world=world)) == ["invalid_input", "unknown_policy", "invalid_input"]


async def test_side_by_side_and_after_a_wait(world: World) -> None:
    """The ordinal is taken when the call is made, so that `gather` needs no keys."""

    async def plan(action: Action, ctx: Context) -> list[Step]:
        both = await ctx.gather(ctx.tool("fx.read", a=1), ctx.tool("fx.read", a=2))
        now, drawn = await ctx.gather(ctx.now(), ctx.uuid())
        return ctx.done([*both, now == NOON, isinstance(drawn, UUID)])

    assert value_of(await play(plan, world=world)) == ["read 1", "read 2", True, True]


async def test_values_are_drawn_once() -> None:
    """A program that runs again gets what it got before."""
    drawn: list[tuple[datetime, UUID, float]] = []

    async def plan(action: Action, ctx: Context) -> list[Step]:
        drawn.append((await ctx.now(), await ctx.uuid(), await ctx.random()))
        await ctx.ask("Go on?")
        return ctx.done()

    waiting = await play(plan)
    await play(plan, decide(waiting, "4", "answer", answer="yes"))
    assert drawn[0] == drawn[1]
    assert drawn[0][0] == NOON
    assert drawn[0][0].tzinfo is UTC
    assert 0 <= drawn[0][2] < 1
    assert [step.payload["payload"] for step in waiting if step.payload.get("policy") == "value"] == [
        {"of": "now"},
        {"of": "uuid"},
        {"of": "random"},
    ]


class Itinerary(Output):
    days: int
    start: date


@pytest.fixture
def itinerary() -> Any:
    register_output("itinerary", Itinerary, told=lambda trip: f"{trip.days} days")
    yield
    unregister_output("itinerary")


@pytest.mark.usefixtures("itinerary")
async def test_what_is_shown_and_given_appears_once_wherever_it_crashes() -> None:
    """An output of the app's own kind, a widget and a file, whose content is stored before the step that names it."""

    async def plan(action: Action, ctx: Context) -> list[Step]:
        await ctx.show(Itinerary(days=3, start=date(2026, 5, 1)))
        await ctx.show(WidgetOutput(widget="table", data={"rows": [1]}, fallback="one row"))
        await ctx.file("trip.txt", b"Day 1", media_type="text/plain", summary="The trip.")
        return ctx.done()

    undisturbed = await play(plan)
    shown = Outputs(undisturbed).in_order()
    assert [(type(each), each.path, each.parent) for each in shown] == [
        (Itinerary, "1", ""),
        (WidgetOutput, "2", ""),
        (FileOutput, "3", ""),
    ]
    assert shown[0].start == date(2026, 5, 1)  # type: ignore[attr-defined]
    assert {step.actor for step in undisturbed if step.type in ("itinerary", "widget", "file")} == {"policy:plan"}
    assert problems_of(undisturbed) == []
    assert len(undisturbed) == 11
    for n in range(1, 6):
        for after in (False, True):
            journal, services = CrashingJournal(EMPTY, CrashPoint(n, after)), Site()
            with suppress(Crash):
                await play(plan, journal=journal, services=services)
            again = await play(plan, journal.ledger, services=services)
            assert [(s.path, s.actor, s.type) for s in again] == [(s.path, s.actor, s.type) for s in undisturbed]
            named = [step.payload["file"] for step in again if step.type == "file"]
            assert named == [len(services.files)]


async def test_what_cannot_be_shown_or_stored_is_an_error() -> None:
    """And stays one: a replay does not try again."""
    tried: list[str] = []

    class Full(Site):
        async def save_file(self, name: str, content: bytes, media_type: str, summary: str) -> int:
            tried.append(name)
            raise ToolError("The disk is full.", "no_space")

    class Stranger(Output):
        days: int

    async def plan(action: Action, ctx: Context) -> list[Step]:
        for saying in (
            ctx.show(Stranger(days=1)),
            ctx.file("a.txt", b"a", media_type="text/plain", summary="a"),
        ):
            with pytest.raises(ToolError) as raised:
                await saying
            tried.append(raised.value.code)
        with pytest.raises(TypeError, match="must be bytes"):
            await ctx.file("a.txt", "a", media_type="text/plain", summary="a")  # type: ignore[arg-type]
        await ctx.ask("Go on?")
        return ctx.done()

    waiting = await play(plan, services=Full())
    assert tried == ["not_kept", "a.txt", "no_space"]
    await play(plan, decide(waiting, "3", "answer", answer="yes"), services=Full())
    assert tried == ["not_kept", "a.txt", "no_space", "not_kept", "no_space"]


async def test_the_end_of_a_policy_has_any_value() -> None:
    """Models and dates as JSON; what cannot be JSON is refused where it is returned."""

    class Trip(BaseModel):
        start: date

    async def inner(action: Action, ctx: Context) -> list[Step]:
        return ctx.done(Trip(start=date(2026, 5, 1)))

    async def plan(action: Action, ctx: Context) -> list[Step]:
        with pytest.raises(TypeError, match="is not JSON"):
            ctx.done(object())
        return ctx.done(await ctx.tool("inner"))

    registry = registry_of(plan)
    registry.register("inner")(inner)
    assert value_of(await carry_on(registry, policy="plan", payload={})) == {"start": "2026-05-01"}


async def test_a_policy_is_registered_by_its_decorator() -> None:
    """With its title, its input and its owner; a registry takes it as it is, and names both owners of a name."""

    class Trip(BaseModel):
        days: int

    @policy("travel.plan", input=Trip, title="Plan a trip", seconds=60.0)
    async def plan(action: Action, ctx: Context) -> list[Step]:
        """Plan a trip.

        Not for models.
        """
        return ctx.done(action.payload["days"])

    assert isinstance(plan, Registered)
    assert (plan.name, plan.title, plan.description, plan.offered) == (
        "travel.plan",
        "Plan a trip",
        "Plan a trip.",
        False,
    )
    registry = PolicyRegistry({"travel.plan": plan})
    assert value_of(await carry_on(registry, policy="travel.plan", payload={"days": 3})) == 3
    refused = await carry_on(registry, policy="travel.plan", payload={"days": "3"})
    assert (end_of(refused) or {})["code"] == "invalid_input"
    with pytest.raises(RegistryError, match=r"'travel.plan' is registered twice: by .*plan and by .*plan"):
        registry.add(plan)


@pytest.mark.parametrize("name", ["Travel", "a b", "model", "agent", "human", "show", "file", "value", "final_answer"])
def test_a_policy_has_a_plain_name_of_its_own(name: str) -> None:
    with pytest.raises(RegistryError, match=r"lower-case words|reserved"):
        policy(name)
