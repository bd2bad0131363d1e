"""Permissions: whether a call may start is checked when it starts, not only when it is approved."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.engine import Action, Context, Step
from agents.engine.errors import Suspended, ToolError
from agents.engine.execution.effect import as_policy, run_tool
from agents.engine.grants.grant import Asked
from agents.engine.ledger import EMPTY, JSON, Ledger
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.runtime.run import Run
from agents.engine.tools.gatekeeper import AskEverybody, GateVerdict
from agents.engine.tools.tool import Tool, ToolCall
from agents.engine.view import View
from tests.engine.cast import World, site
from tests.engine.journals import Crash, CrashingJournal, CrashPoint, numbered
from tests.engine.support import (
    Site,
    call,
    carry_on,
    decide,
    digest_of,
    end_of,
    lines,
    open_gates,
    play,
    results_in,
    says,
)

BATCH = [says("", call("fx.read", a=1), call("touch", name="t"), call("shell.run", command="ls")), says("Done.")]
WHY = "user:7 may not decide here any more."


@dataclass
class Holding(AskEverybody):
    """Keeps what it was asked, and says no to the actors in `lost`."""

    lost: tuple[str, ...] = ()
    verdict: GateVerdict = field(default_factory=GateVerdict)
    told: list[tuple[str, str]] = field(default_factory=list)

    async def decide(self, tool: Tool, call: ToolCall[Any], asked: Asked) -> GateVerdict:
        return self.verdict

    async def holds(self, tool: Tool, by: str, asked: Asked | None) -> str | None:
        self.told.append((tool.name, by))
        return WHY if by in self.lost else None


def result(ledger: Ledger, path: str) -> dict[str, JSON]:
    step = View(ledger).result(path)
    assert step
    return step.payload


async def test_every_call_is_asked_about_when_it_starts(world: World) -> None:
    """Reads too; the question names who approved the call, or "" if nobody had to (C13)."""
    registry, _ = site(BATCH, world.tools())
    holding = Holding()
    waiting = await carry_on(registry, gatekeeper=holding)
    assert holding.told == [("fx.read", ""), ("touch", ""), ("shell.run", "")]
    await carry_on(registry, decide(waiting, "1/2/human"), gatekeeper=holding)
    assert holding.told[3:] == [("shell.run", "user:7")]


async def test_an_approval_of_somebody_who_may_no_more_starts_nothing(world: World) -> None:
    """The permission was taken away between the decision and the start (C13)."""
    registry, provider = site(BATCH, world.tools())
    waiting = await carry_on(registry)
    ledger = await carry_on(registry, decide(waiting, "1/2/human"), gatekeeper=Holding(lost=("user:7",)))
    assert result(ledger, "1/2") == {"error": True, "code": "not_permitted", "message": WHY}
    assert "1/2 action_start" not in lines(ledger)
    assert world.times["shell.run", "ls"] == 0
    assert results_in(provider.asked[1])[2] == f"Error (not_permitted): {WHY}"


async def test_a_rule_that_was_withdrawn_starts_nothing(world: World) -> None:
    """Who approved is the rule then, and it is asked about like a person."""
    registry, _ = site(BATCH, world.tools())
    holding = Holding(lost=("rule:12",), verdict=GateVerdict("allow", "rule:12"))
    ledger = await carry_on(registry, gatekeeper=holding)
    assert result(ledger, "1/2")["code"] == "not_permitted"
    assert ("shell.run", "ls") not in world.done


async def test_nothing_starts_for_an_owner_who_is_gone(world: World) -> None:
    """Not even a read; and nobody is asked about what may not start anyway."""
    registry, _ = site(BATCH, world.tools())
    ledger = await carry_on(registry, gatekeeper=Holding(lost=("",)))
    assert [result(ledger, f"1/{n}")["code"] for n in range(3)] == ["not_permitted"] * 3
    assert "1/2/human action_call" not in lines(ledger)
    assert end_of(ledger)
    assert world.done == []


async def test_nobody_is_asked_when_the_time_is_up(world: World) -> None:
    """The turn's time ran out beside a read: the call after it has its error at once (R3)."""
    services = Site()
    world.at["fx.read"] = lambda call: setattr(services, "spent", 300.0)
    registry, provider = site(BATCH, world.tools())
    ledger = await carry_on(registry, services=services)
    assert result(ledger, "1/2")["code"] == "timeout"
    assert "1/2/human action_call" not in lines(ledger)
    end = end_of(ledger)
    assert end
    assert end["stop_reason"] == "timeout"
    assert len(provider.asked) == 1


async def test_one_barred_call_holds_up_no_other(world: World) -> None:
    """It has its error when the others are asked about; what comes after them waits (R6)."""

    class NoShell(AskEverybody):
        async def holds(self, tool: Tool, by: str, asked: Asked | None) -> str | None:
            return WHY if tool.name == "shell.run" else None

    calls = (call("shell.run", command="ls"), call("pay", amount=200), call("fx.read", a=1))
    registry, _ = site([says("", *calls), says("Done.")], world.tools())
    waiting = await carry_on(registry, gatekeeper=NoShell())
    assert result(waiting, "1/0")["code"] == "not_permitted"
    assert open_gates(waiting) == ["1/1/human"]
    assert "1/2 action_deferred" in lines(waiting)
    assert world.done == []
    final = await carry_on(registry, decide(waiting, "1/1/human"), gatekeeper=NoShell())
    assert end_of(final)
    assert world.done == [("pay", 200), ("fx.read", 1)]


async def test_nobody_is_asked_what_became_of_a_call_that_may_not_run_again(world: World) -> None:
    """Its owner is gone: the model is told that it had begun (C13)."""
    registry, _ = site([says("", call("shell.run", command="ls")), says("Done.")], world.tools())
    waiting = await _until_card(registry)
    begun = waiting[: next(n for n, step in enumerate(waiting) if step.path == "1/0/card1")]
    ledger = await carry_on(registry, begun, gatekeeper=Holding(lost=("",)))
    assert result(ledger, "1/0")["code"] == "not_permitted"
    assert "may have happened" in result(ledger, "1/0")["message"]
    assert "1/0/card1 action_call" not in lines(ledger)
    still = await carry_on(registry, begun, gatekeeper=Holding(lost=("user:7",)))
    assert open_gates(still) == ["1/0/card1"], "who approved it then is not who lets it run again"


async def test_run_again_is_asked_about_by_who_said_so(world: World) -> None:
    """Not by who approved it the first time: that approval is used up (C13)."""
    registry, _ = site([says("", call("shell.run", command="ls")), says("Done.")], world.tools())
    crashed = await _until_card(registry)
    holding = Holding()
    again = decide(crashed, "1/0/card1", "run_again", by="user:9")
    final = await carry_on(registry, again, gatekeeper=holding)
    assert holding.told == [("shell.run", "user:9")]
    assert end_of(final)
    lost = await carry_on(registry, again, gatekeeper=Holding(lost=("user:9",)))
    assert result(lost, "1/0")["code"] == "not_permitted"
    assert "may have happened" in result(lost, "1/0")["message"]


async def _until_card(registry: PolicyRegistry) -> Ledger:
    """A turn whose only call began, and whose worker died before its result was recorded."""
    ledger = decide(await carry_on(registry), "1/0/human")
    journal = CrashingJournal(ledger, CrashPoint(1, after=True))
    with pytest.raises(Crash):
        await carry_on(registry, ledger, journal=journal)
    waiting = await carry_on(registry, journal.ledger)
    assert open_gates(waiting) == ["1/0/card1"]
    return waiting


async def test_a_replay_asks_nobody_about_what_is_done(world: World) -> None:
    """A call with a result was permitted when it started."""
    registry, _ = site(BATCH, world.tools())
    done = await carry_on(registry)
    holding = Holding(lost=("", "user:7"))
    ledger = await carry_on(registry, decide(done, "1/2/human", "reject"), gatekeeper=holding)
    assert holding.told == []
    assert not result(ledger, "1/0").get("error")


# The executor itself (T-04)


async def direct(world: World, steps: Ledger, name: str = "shell.run", **payload: JSON) -> list[Step]:
    """`run_tool` called past the loop, for the call at 1/0 of this ledger."""
    tools = {tool.name: tool for tool in world.tools()}
    run = Run(PolicyRegistry(), CrashingJournal(steps), Site(), steps=steps)
    action = Action(name, payload)
    return await run_tool(tools[name], action, Context(run, "1/0", action))


CALL = Ledger(
    tuple(
        numbered(
            EMPTY,
            [
                Step("user:1", "action_call", {"policy": "agent", "payload": {}}),
                Step("runtime", "action_call", {"policy": "model", "payload": {"round": 1}}, path="1"),
                Step("model", "action_call", {"policy": "shell.run", "payload": {"command": "ls"}}, path="1/0"),
            ],
        )
    )
)


async def test_the_executor_refuses_a_gated_call_that_nobody_approved(world: World) -> None:
    """Called directly, past the loop, it raises and does nothing (T-04)."""
    with pytest.raises(Suspended):
        await direct(world, CALL, command="ls")
    assert world.done == []


@pytest.mark.parametrize("decided", ["reject", "expired", "cancelled", "answered", ""])
async def test_the_executor_runs_nothing_that_was_not_approved(world: World, decided: str) -> None:
    """Whatever the decision says but `approve`: an error, and no effect (T-04)."""
    gate = Step("runtime", "action_call", {"policy": "human", "payload": {"ask": "approve"}}, path="1/0/human")
    shell = next(each for each in world.tools() if each.name == "shell.run")
    exactly = digest_of(shell, {"command": "ls"})  # nothing but the word stands in its way
    said = Step("user:7", "action_result", {"decision": decided, "digest": exactly}, path="1/0/human")
    with pytest.raises(ToolError):
        await direct(world, CALL.extend(numbered(CALL, [gate, said])), command="ls")
    assert world.done == []


async def test_the_executor_refuses_a_call_whose_gate_is_open(world: World) -> None:
    """Asked and not answered; also where it is marked as begun. It asks no second time (T-04)."""
    gate = Step("runtime", "action_call", {"policy": "human", "payload": {"ask": "approve"}}, path="1/0/human")
    began = Step("system", "action_start", {"attempt": 1}, path="1/0")
    for steps in ([gate], [gate, began]):
        with pytest.raises(Suspended):
            await direct(world, CALL.extend(numbered(CALL, steps)), command="ls")
    assert world.done == []


async def test_an_approval_is_used_once(world: World) -> None:
    """A second call of the executor for the same start asks what became of the first (T-04, I3)."""
    registry, _ = site([says("", call("shell.run", command="ls")), says("Done.")], world.tools())
    final = await play(registry, decide)
    began = next(n for n, step in enumerate(final) if step.path == "1/0" and step.type == "action_start")
    with pytest.raises(Suspended):
        await direct(world, final[: began + 1], command="ls")
    assert world.times["shell.run", "ls"] == 1


async def test_a_workflows_gated_call_is_asked_about_once(world: World) -> None:
    """Run again before anybody answered, it opens no second gate at the same call (I5)."""
    registry = PolicyRegistry()
    for tool in world.tools():
        registry.register(tool.name)(as_policy(tool))

    @registry.register("flow")
    async def flow(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("shell.run", {"command": "ls"}))

    waiting = await carry_on(registry, policy="flow", payload={})
    unpaused = waiting[: next(n for n, step in enumerate(waiting) if step.type == "pause")]
    again = await carry_on(registry, unpaused, policy="flow", payload={})
    assert lines(again).count("1/human action_call") == 1
    assert open_gates(again) == ["1/human"]
