"""An agent that a policy asks: what it is told, what it may use, its rounds, and the form of its answer."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from pydantic import BaseModel, Field, field_validator

from agents import Action, Context, Plugin, Round, Step, ToolError, policy
from agents.engine import Ledger, PolicyRegistry
from agents.engine.agent.model import model
from agents.engine.agent.offered import offered
from agents.engine.agent.turn import agent
from agents.engine.closing import turn_end
from agents.engine.errors import ProviderError
from agents.engine.execution.effect import as_policy
from agents.engine.interfaces.messages import UserMessage
from agents.engine.interfaces.services import PastTurn
from agents.engine.ledger import EMPTY, JSON
from agents.engine.limits import Limits
from agents.engine.runtime.run import Run
from agents.engine.view import View
from conversations.verification.rules import problems_of
from tests.engine.cast import World, site
from tests.engine.journals import Crash, CrashingJournal, CrashPoint
from tests.engine.sound import problems
from tests.engine.support import (
    ScriptedProvider,
    Site,
    call,
    carry_on,
    decide,
    end_of,
    garbled,
    last,
    lines,
    open_gates,
    results_in,
    says,
    seen,
)


class Trip(BaseModel):
    """A trip, day by day."""

    place: str
    days: int = Field(ge=1)

    @field_validator("place")
    @classmethod
    def known(cls, place: str) -> str:
        if place == "Atlantis":
            raise ValueError("it is not on the map")
        return place


ROME = {"place": "Rome", "days": 3}


def giving(**arguments: JSON) -> Any:
    return says("", call("final_answer", **arguments))


def asking(script: Any, world: World | None = None, **asked: Any) -> tuple[PolicyRegistry, ScriptedProvider]:
    """A site whose root `plan` asks the agent once, and ends with its answer, or the code of the error."""
    tools = (world or World()).tools()
    registry, provider = site(script, tools)
    for each in tools:
        registry.register(each.name)(as_policy(each))

    @registry.register("plan")
    async def plan(action: Action, ctx: Context) -> list[Step]:
        try:
            return ctx.done(await ctx.agent("Plan a trip.", **asked))
        except ToolError as error:
            return ctx.done(f"{error.code}: {error.message}")

    return registry, provider


async def plan(registry: PolicyRegistry, ledger: Ledger = EMPTY, **options: Any) -> Ledger:
    return await carry_on(registry, ledger, policy="plan", payload={}, **options)


def value_of(ledger: Ledger) -> JSON:
    result = View(ledger).result("")
    assert result, lines(ledger)
    return result.value


async def test_it_is_told_its_text_and_nothing_of_the_conversation() -> None:
    """Not even in a conversation with earlier turns; its answer is its text."""
    registry, provider = asking([says("To Rome.")])
    ledger = await plan(registry, services=Site(past=[PastTurn(1, "Earlier.", ())]))
    assert value_of(ledger) == "To Rome."
    assert [seen(request) for request in provider.asked] == [[UserMessage("Plan a trip.")]]
    called = View(ledger).call("1")
    assert called
    assert called.payload == {"policy": "agent", "payload": {"text": "Plan a trip.", "rounds": 10}}
    assert problems_of(ledger) == []


async def test_it_may_use_the_tools_that_are_named(world: World) -> None:
    """Only these, whatever else the site has; a tool that waits holds up the whole turn."""
    registry, provider = asking(
        [says("", call("shell.run", command="ls")), says("Done.")], world, tools=["shell.run", "fx.read"]
    )
    ledger = await plan(registry)
    assert [tool.name for tool in provider.asked[0].tools] == ["fx_read", "shell_run"]
    assert open_gates(ledger) == ["1/1/0/human"]
    assert value_of(await plan(registry, decide(ledger, "1/1/0/human"))) == "Done."
    assert world.done == [("shell.run", "ls")]
    registry, provider = asking([says("Done.")], world, tools=[])
    await plan(registry)
    assert provider.asked[0].tools == ()


async def test_a_named_tool_may_be_one_that_no_agent_is_offered(world: World) -> None:
    """It is found where the site's policies are; a plugin may push it, too; a name that nobody knows is an error."""
    read, *others = world.tools()

    class Pushing(Plugin):
        name = "pushing"

        async def prepare(self, round: Round) -> None:
            round.tools += others

    registry = PolicyRegistry()
    base, provider = site([says("Done.")])
    found = base.get("model")
    assert found
    registry.add(found)
    registry.register("agent")(agent(plugins=[Pushing]))
    registry.register(read.name)(as_policy(read))

    @registry.register("plan")
    async def asks(action: Action, ctx: Context) -> list[Step]:
        await ctx.agent("go", tools=["fx.read", "touch"])
        with pytest.raises(ToolError, match=r"no tool 'no.such'") as raised:
            await ctx.agent("go", tools=["fx.read", "no.such"])
        return ctx.done(raised.value.code)

    assert value_of(await plan(registry)) == "unknown_tool"
    assert [[tool.name for tool in request.tools] for request in provider.asked] == [["fx_read", "touch"]]


async def test_its_rounds_are_its_own_at_most_and_all_of_them_the_turns() -> None:
    """The turn counts every question; when it has none left, nobody is asked (S84, S86)."""
    endless = lambda request: says("", call("fx.read", a=1))  # noqa: E731
    registry, provider = asking(endless, rounds=2)
    assert str(value_of(await plan(registry))).startswith("max_rounds: Stopped after 2 rounds")
    assert len(provider.asked) == 2
    registry, provider = asking(endless, rounds=9)
    journal = CrashingJournal()
    run = Run(registry, journal, Site(), limits=Limits(rounds=3))
    await run.run_turn("plan", {})
    assert value_of(journal.ledger) == "max_rounds: Stopped after 3 rounds, its limit."
    assert len(provider.asked) == 3
    assert run.budget() == {"steps_used": 3, "steps_remaining": 0}
    assert ["Only" in request.system for request in provider.asked] == [False, True, True]


async def test_two_agents_share_the_rounds_of_the_turn() -> None:
    """What the first one used is missing to the second."""

    world = World()
    registry, provider = site(lambda request: says("", call("fx.read", a=1)), world.tools())

    @registry.register("plan")
    async def both(action: Action, ctx: Context) -> list[Step]:
        codes = []
        for rounds in (3, 3):
            with pytest.raises(ToolError) as raised:
                await ctx.agent("go", rounds=rounds)
            codes.append(raised.value.message)
        return ctx.done(codes)

    ledger = await plan(registry, limits=Limits(rounds=4))
    assert value_of(ledger) == [
        "Stopped after 3 rounds, its limit.",
        "Not asked: the 4 rounds of this turn are used up.",
    ]
    assert len(provider.asked) == 4


async def test_its_answer_has_the_form_that_is_asked_for() -> None:
    """The model gives it by a tool, whose schema is that of the form."""
    registry, provider = asking([says("", call("fx.read", a=1)), giving(**ROME)], output=Trip)
    ledger = await plan(registry)
    assert value_of(ledger) == ROME
    (offered,) = (tool for tool in provider.asked[0].tools if tool.name == "final_answer")
    assert offered.schema["required"] == ["place", "days"]
    assert offered.description == "Give your final answer. A trip, day by day."
    assert "final_answer" in provider.asked[0].system
    called = View(ledger).call("1")
    assert called
    assert called.payload["payload"]["output"] == offered.schema
    assert problems_of(ledger) == []
    assert await plan(registry, ledger) == ledger


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (giving(place="Rome"), "Error (invalid_input): days: Field required"),
        (giving(place="Atlantis", days=1), "Error (invalid_input): place: it is not on the map"),
        (says("", call("final_answer", "", "not JSON")), "Error (invalid_input): The arguments are not"),
        (says("To Rome, for 3 days."), "[error] Give your answer by a call of the tool final_answer"),
        (garbled("{"), "[error] The tool is missing."),
    ],
)
async def test_an_answer_that_does_not_fit_is_asked_for_again(wrong: Any, told: str) -> None:
    """As often as one that cannot be read; the model is told why."""
    registry, provider = asking([wrong, wrong, giving(**ROME)], output=Trip)
    assert value_of(await plan(registry)) == ROME
    heard = [*results_in(provider.asked[1]), *(m.text for m in seen(provider.asked[1]) if isinstance(m, UserMessage))]
    assert any(words.startswith(told) for words in heard), heard
    assert all(problems(seen(request)) == [] for request in provider.asked)
    registry, provider = asking(lambda request: wrong, output=Trip)
    assert str(value_of(await plan(registry))).startswith("parse_failures: Stopped because 3 answers of the model in a")
    assert len(provider.asked) == 3


async def test_what_it_calls_beside_its_answer_is_done_first(world: World) -> None:
    """Also if that waits for a person; a call that the model marked as the last is not the answer."""
    together = says("", call("final_answer", **ROME), call("shell.run", command="ls"))
    registry, _ = asking([together], world, output=Trip)
    ledger = await plan(registry)
    assert end_of(ledger) is None
    assert value_of(await plan(registry, decide(ledger, open_gates(ledger)[0]))) == ROME
    registry, _ = asking([says("", last("fx.read", a=1)), giving(**ROME)], output=Trip)
    assert value_of(await plan(registry)) == ROME


async def test_a_recorded_answer_that_no_longer_fits_is_an_error() -> None:
    """The agent is not asked again."""
    registry, _ = asking([giving(**ROME)], output=Trip)
    ledger = await plan(registry)

    class Later(Trip):
        by: str

    registry, provider = asking([giving(**ROME)], output=Later)
    late = await plan(registry, ledger[:-1])
    assert value_of(late) == "invalid_input: The recorded answer is no Later any more: by: Field required"
    assert provider.asked == []


@pytest.mark.parametrize("after", [False, True])
async def test_it_goes_on_wherever_it_crashes(after: bool) -> None:
    """The same ledger as undisturbed, and no answer asked for twice that was recorded."""
    script = [says("", call("fx.read", a=1)), giving(place="Rome"), says("Rome."), giving(**ROME)]
    undisturbed, count = await plan(asking(script, output=Trip)[0]), 0
    assert value_of(undisturbed) == ROME
    for n in range(1, 20):
        registry, provider = asking(script, output=Trip)
        journal = CrashingJournal(EMPTY, CrashPoint(n, after))
        with suppress(Crash):
            await plan(registry, journal=journal)
        count += journal.dead
        again = await plan(registry, journal.ledger)
        assert [s.payload for s in again if s.type != "action_start"] == [
            s.payload for s in undisturbed if s.type != "action_start"
        ]
        assert len(provider.asked) <= len(script) + 1
    assert count > 8


async def test_a_model_that_fails_is_an_error_of_the_call() -> None:
    registry, _ = asking([[ProviderError("No such model.", code="not_found")]])
    assert value_of(await plan(registry)) == "not_found: No such model."


@pytest.mark.parametrize("root", ["agent", "plan"])
async def test_it_is_of_the_tier_of_the_turn(root: str) -> None:
    """As whoever started the turn chose it."""
    registry, provider = asking([says("Done.")])
    site = {"site": {"tier": "high"}} if root == "plan" else {}
    begun = Step("user:1", "action_call", {"policy": "plan", "payload": {}, **site}, id=1)
    await plan(registry, Ledger((begun,)))
    assert [request.tier for request in provider.asked] == ["high" if site else "normal"]


@pytest.mark.parametrize(
    "payload", [{"rounds": 0}, {"rounds": True}, {"tools": "fx.read"}, {"tools": [1]}, {"output": {"type": "object"}}]
)
async def test_what_it_cannot_be_told_is_an_error(payload: dict[str, JSON]) -> None:
    registry, _ = asking([says("Done.")])

    @registry.register("long")
    async def long(action: Action, ctx: Context) -> list[Step]:
        return ctx.done((await ctx.call(Action("agent", {"text": "go", **payload})))[-1].payload["code"])

    assert value_of(await carry_on(registry, policy="long", payload={})) == "invalid_input"


async def test_a_model_gives_an_offered_agent_its_text_and_nothing_else(world: World) -> None:
    """Else it would choose tools that nobody offered it, the tier, and the system text."""
    tools = {tool.name: tool for tool in world.tools()}
    guide = policy("guide", offered=True)(agent(tools=[tools["shell.run"]], prompt=""))
    wants = {"text": "Go.", "tools": ["report.write"], "tier": "high", "system": "Obey.", "rounds": 1}
    script = [says("", call("guide", **wants)), says("I know."), says("Done.")]
    provider = ScriptedProvider(lambda request: script.pop(0))
    registry = PolicyRegistry({"guide": guide, **{name: as_policy(tool) for name, tool in tools.items()}})
    registry.register("model")(model(provider))
    registry.register("agent")(agent(tools=[offered(guide)]))
    ledger = await carry_on(registry)
    assert (end_of(ledger) or {})["state"] == "completed"
    within = provider.asked[1]
    assert [tool.name for tool in within.tools] == ["shell_run"]
    assert (within.tier, "Obey." in within.system) == ("normal", False)
    assert problems_of(ledger) == []


@pytest.mark.parametrize(
    ("payload", "state"),
    [({"text": "Go.", "files": ["a"], "system": "Obey."}, "completed"), ({"text": ["Go."]}, "failed")],
)
async def test_whoever_starts_an_agent_of_an_app_gives_only_its_text(payload: Any, state: str) -> None:
    provider = ScriptedProvider([says("Yes.")])
    registry = PolicyRegistry({"guide": policy("guide")(agent())})
    registry.register("model")(model(provider))
    ledger = await carry_on(registry, policy="guide", payload=payload)
    assert turn_end(ledger[-1])[0] == state
    assert not any("Obey." in request.system for request in provider.asked)


@pytest.mark.parametrize("own", ["", "You are a guide."])
async def test_the_system_prompt_that_a_site_recorded_goes_before_that_in_the_code(own: str) -> None:
    """For the agent that the turn began with alone: one that it asks has its own."""
    provider = ScriptedProvider(lambda request: says("Yes."))
    registry = PolicyRegistry({"guide": policy("guide")(agent(prompt=own)), "inner": agent(prompt="Inner.")})
    registry.register("model")(model(provider))

    @registry.register("plan")
    async def plan(action: Action, ctx: Context) -> list[Step]:
        return ctx.done((await ctx.call(Action("inner", {"text": "go", "system": "Obey."})))[-1].payload["output"])

    beside = {"tier": "normal", "system": {"id": 1, "version": 2, "text": "The site's."}}
    for name in ("guide", "plan"):
        asked = {"policy": name, "payload": {"text": "Go."}, "site": beside}
        await carry_on(
            registry, EMPTY.append(Step("user:1", "action_call", asked)), policy=name, payload={"text": "Go."}
        )
    assert [request.system for request in provider.asked] == ["The site's.", "Inner."]


async def test_questions_side_by_side_share_the_rounds_of_the_turn() -> None:
    """However long each is prepared."""

    class Slow(Site):
        async def over_quota(self) -> str | None:
            for _ in range(5):
                await asyncio.sleep(0)
            return None

    registry = PolicyRegistry({"agent": agent()})
    provider = ScriptedProvider(lambda request: says("Yes."))
    registry.register("model")(model(provider))

    @registry.register("plan")
    async def plan(action: Action, ctx: Context) -> list[Step]:
        async def ask() -> str:
            try:
                return await ctx.agent("Well?", key=str(next(keys)))
            except ToolError as error:
                return error.code

        keys = iter(range(20))
        return ctx.done(await ctx.gather(*(ask() for _ in range(20))))

    ledger = await carry_on(registry, policy="plan", payload={}, services=Slow(), limits=Limits(rounds=3))
    assert len(provider.asked) == 3
    assert sorted(set(ledger[-1].value)) == ["Yes.", "max_rounds"]
