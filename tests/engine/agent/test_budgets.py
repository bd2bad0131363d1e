"""Budgets: what a turn may use, per agent, with the site's settings as defaults."""

from __future__ import annotations

import math

import pytest

from agents.engine import Action, Context, Ledger, Step, invoke_action, loop_wrapper, run
from agents.engine.agent.model import model
from agents.engine.agent.turn import ONCE_MORE, agent
from agents.engine.errors import RegistryError
from agents.engine.limits import Limits
from agents.engine.outputs.kinds import TextOutput
from agents.engine.outputs.timeline import Outputs
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.runtime.run import Run
from agents.engine.view import View
from tests.engine.cast import World, site
from tests.engine.journals import CrashingJournal
from tests.engine.support import (
    ScriptedProvider,
    Site,
    call,
    carry_on,
    decide,
    end_of,
    results_in,
    says,
    seen,
)


async def test_an_agent_may_have_a_running_time_of_its_own(world: World) -> None:
    """A keyword of the agent; else the site's (R3, S54)."""
    for own, spent, reason in [(60.0, 60.0, "timeout"), (None, 60.0, "text"), (400.0, 350.0, "text")]:
        registry, _ = site([says("Done.")], world.tools(), seconds=own)
        end = end_of(await carry_on(registry, services=Site(spent=spent)))
        assert end
        assert end["stop_reason"] == reason


@pytest.mark.parametrize(
    ("reads", "declared", "stopped_after"), [(40.0, math.inf, None), (70.0, math.inf, 60), (40.0, 120.0, 120)]
)
async def test_the_time_of_an_agent_within_a_turn_begins_with_it(
    world: World, reads: float, declared: float, stopped_after: int | None
) -> None:
    """Time before its first round does not count. The turn has no limit, unless its program declares one (R3, S54)."""
    registry, services = _with_inner(world, seconds=declared), Site(spent=100.0)
    world.at["fx.read"] = lambda call: setattr(services, "spent", 100.0 + reads)
    ledger = await carry_on(registry, policy="flow", payload={}, services=services, limits=Limits(seconds=50.0))
    result = View(ledger).result("1")
    assert result
    assert result.failed == (stopped_after is not None)
    if stopped_after:
        assert result.payload["message"] == f"Stopped after {stopped_after} seconds of running, its limit."


async def test_an_agent_within_a_turn_goes_on_counting_after_a_crash(world: World) -> None:
    """Its start is in the ledger: another worker gives it no more time, and no less."""
    registry = _with_inner(world)
    ledger = await carry_on(registry, policy="flow", payload={}, services=Site(spent=100.0))
    cut = next(n for n, step in enumerate(ledger) if step.path == "1/2")
    for spent, code in ((159.0, None), (160.0, "timeout")):
        services = Site(spent=spent)
        late = await carry_on(registry, ledger[:cut], policy="flow", payload={}, services=services)
        result = View(late).result("1")
        assert result
        assert result.payload.get("code") == code


def _with_inner(world: World, seconds: float = math.inf) -> PolicyRegistry:
    """A workflow that calls an agent, which has 60 seconds."""
    registry, _ = site([says("", call("fx.read", a=1)), says("Done.")], world.tools())
    registry.register("inner")(agent(tools=world.tools(), seconds=60.0))

    @registry.register("flow", seconds=seconds)
    async def flow(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("inner", {"text": "go"}))

    return registry


async def test_a_replay_is_not_stopped_by_the_clock(world: World) -> None:
    """What has its results is done: only what would begin is asked about (R3)."""
    registry, _ = site([says("", call("fx.read", a=1)), says("Done.")], world.tools())
    ledger = await carry_on(registry)
    cut = next(n for n, step in enumerate(ledger) if step.path == "2")
    late = await carry_on(registry, ledger[:cut], services=Site(spent=900.0))
    result = View(late).result("1/0")
    assert result
    assert not result.failed
    assert world.done == [("fx.read", 1)]


async def test_an_attempt_that_would_come_too_late_says_that_the_first_may_have_run(world: World) -> None:
    """An idempotent call that was cut off is not begun again after its time; nobody takes it for undone (R15)."""
    registry, provider = site([says("", call("touch", name="x")), says("Done.")], world.tools())
    ledger = await carry_on(registry)
    began = next(n for n, step in enumerate(ledger) if step.path == "1/0" and step.type == "action_start")
    world.done.clear()
    late = await carry_on(registry, ledger[: began + 1], services=Site(spent=900.0))
    result = View(late).result("1/0")
    assert result
    assert result.payload["code"] == "timeout"
    assert "may have happened" in result.payload["message"]
    assert world.done == []
    assert len(provider.asked) == 2


async def test_over_the_quota_no_model_is_asked(world: World) -> None:
    """The turn fails with the sentence as its last text; what was done stays, and another turn goes on (C19)."""
    why = "100 tokens were used in the last 24 hours: try again later."
    registry, provider = site([says("I look.", call("shell.run", command="ls")), says("Done.")], world.tools())
    waiting = await carry_on(registry)
    ledger = await carry_on(registry, decide(waiting, "1/0/human"), services=Site(quota=why))
    end = end_of(ledger)
    assert end
    assert (end["state"], end["stop_reason"]) == ("failed", "quota")
    notice = Outputs(ledger).in_order()[-1]
    assert isinstance(notice, TextOutput)
    assert (notice.text, notice.role_hint) == (why, "system")
    assert world.done == [("shell.run", "ls")]
    assert len(provider.asked) == 1
    assert ledger[: len(waiting)] == waiting


async def test_an_answer_that_is_asked_for_once_more_is_told_so(world: World) -> None:
    """In the system message, in every round; the message itself stands as it was typed."""
    registry, provider = site([says("", call("fx.read", a=1)), says("Another.")], world.tools())
    await carry_on(registry, payload={"text": "Why?", "repeats": 3})
    assert all(ONCE_MORE in request.system for request in provider.asked)
    assert [m.text for m in seen(provider.asked[0])] == ["Why?"]  # type: ignore[union-attr]
    registry, provider = site([says("Yes.")], world.tools())
    await carry_on(registry, payload={"text": "Why?"})
    assert ONCE_MORE not in provider.asked[0].system


async def test_an_agent_speaks_the_protocol_that_it_names(world: World) -> None:
    """Request and history go through that provider; without a name through the site's own (R1)."""
    native, json = ScriptedProvider([says("native")]), ScriptedProvider([says("", call("fx.read", a=1)), says("json")])
    for named, spoken, silent in [("json", json, native), (None, native, json)]:
        registry = PolicyRegistry()
        registry.register("model")(model(native, protocols={"json": json}))
        registry.register("agent")(agent(tools=world.tools(), protocol=named))  # type: ignore[arg-type]
        before = len(silent.asked)
        await carry_on(registry)
        assert len(silent.asked) == before
        assert spoken.asked
    assert results_in(json.asked[1]) == ["read 1"]


async def test_a_protocol_that_nobody_speaks_fails_the_turn(world: World) -> None:
    """A mistake of the site, reported as such."""
    registry, _ = site([says("Done.")], world.tools(), protocol="json")
    with pytest.raises(RegistryError, match="'json', for which there is no provider"):
        await carry_on(registry)


async def test_the_wrap_up_follows_the_agents_own_budget(world: World) -> None:
    """Two rounds before its own end, whatever the site grants (R3)."""
    registry, provider = site(lambda _: says("", call("fx.read", a=1)), world.tools(), rounds=3)
    await carry_on(registry, limits=Limits(rounds=20))
    assert ["Only 2" in r.system or "Only 1" in r.system for r in provider.asked] == [False, True, True]


class Asking:
    """A program that asks the model `times` times, by calls of its own or as turns of one decorated call."""

    def __init__(self, times: int, decorated: bool, world: World) -> None:
        self.registry, self.provider = site(lambda request: says("Next.", call("search")), world.tools())
        self.registry.register("search")(self.search)
        self.registry.register("flow")(self.decorated if decorated else self.plain)
        self.times = times

    async def search(self, action: Action, ctx: Context) -> list[Step]:
        return []

    async def decorated(self, action: Action, ctx: Context) -> list[Step]:
        asked = Action("model", {"ledger": Ledger()}, frozenset({"search"}))
        return await ctx.call(asked, [loop_wrapper(self.times), invoke_action()])

    async def plain(self, action: Action, ctx: Context) -> list[Step]:
        for _ in range(self.times):
            last = (await ctx.call(Action("model", {"system": "Go."})))[-1]
        return [last]


@pytest.mark.parametrize("decorated", [False, True])
@pytest.mark.parametrize(("times", "code"), [(3, None), (4, "max_rounds")])
async def test_questions_of_a_program_are_rounds_of_its_turn(
    world: World, decorated: bool, times: int, code: str | None
) -> None:
    """They are counted and limited, also as turns of a decorated call; an answer says that none are left (S84, S86)."""
    asking = Asking(times, decorated, world)
    journal = CrashingJournal()
    run = Run(asking.registry, journal, Site(), limits=Limits(rounds=3))
    await run.run_turn("flow", {})
    assert len(asking.provider.asked) == 3
    assert run.budget() == {"steps_used": 3, "steps_remaining": 0}
    refused = [step for step in journal.ledger if step.payload.get("code") == "max_rounds" and step.path != ""]
    assert {step.payload["message"] for step in refused} == (
        {"Not asked: the 3 rounds of this turn are used up."} if code else set()
    )
    replayed = Run(asking.registry, CrashingJournal(journal.ledger[:-1]), Site(), steps=journal.ledger[:-1])
    await replayed.run_turn("flow", {})
    assert len(asking.provider.asked) == 3


async def test_a_turn_keeps_the_budget_that_it_was_granted(world: World) -> None:
    """It stands in its first start. What the site grants later is for later turns (S97)."""
    registry, provider = site([says("", call("shell.run", command="ls")), says("Done.")], world.tools(), rounds=2)
    waiting = await carry_on(registry, start=True, limits=Limits(seconds=120.0))
    assert waiting[1].payload == {"attempt": 1, "fence": 0, "limits": {"rounds": 2, "seconds": 120.0}}
    registry, provider = site(provider, world.tools(), rounds=1)
    late, other = Site(spent=119.0), Limits(seconds=100.0)
    ledger = await carry_on(registry, decide(waiting, "1/0/human"), start=True, services=late, limits=other)
    assert [step.payload for step in ledger if step.type == "action_start" and not step.path][1] == {
        "attempt": 2,
        "fence": 0,
    }
    end = end_of(ledger)
    assert end
    assert (end["state"], len(provider.asked)) == ("completed", 2)


async def test_a_program_without_a_limit_is_granted_no_seconds(world: World) -> None:
    """Its first start says so (S97)."""
    asking = Asking(1, False, world)
    ledger = await carry_on(asking.registry, policy="flow", payload={}, start=True)
    assert ledger[1].payload["limits"] == {"rounds": 10, "seconds": None}
    later = await carry_on(asking.registry, ledger[:2], policy="flow", payload={}, services=Site(spent=9e9))
    assert later[-1].payload.get("code") is None


async def test_a_program_asks_for_no_round() -> None:
    """It would count twice: as a round of an agent, and as a question (S84)."""
    provider = ScriptedProvider([says("Unused.")])

    async def root(action: Action, ctx: Context) -> list[Step]:
        answer = await ctx.call(Action("model", {"round": 1, "ledger": Ledger()}))
        assert answer[-1].payload["code"] == "invalid_input"
        return []

    await run("root", {}, {"root": root, "model": model(provider)})
    assert provider.asked == []
