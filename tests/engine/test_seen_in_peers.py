"""Bugs seen in other systems, replayed against this loop: approvals that were repeated, mixed up or lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.engine.agent.projection import CallIds, turn_messages
from agents.engine.errors import ProviderError
from agents.engine.interfaces.messages import AssistantMessage, ResultMessage
from agents.engine.interfaces.provider import Answer, Request, TextDelta, ToolRequest
from agents.engine.interfaces.services import PastTurn
from agents.engine.ledger import JSON, Ledger
from agents.engine.limits import Limits
from agents.engine.outputs.timeline import Outputs
from agents.engine.tools.tool import ToolCall, tool
from agents.engine.view import View
from tests.budget import examples
from tests.engine.cast import Command, World, site
from tests.engine.journals import Crash, CrashingJournal, CrashPoint
from tests.engine.sound import problems
from tests.engine.support import (
    ScriptedProvider,
    Site,
    call,
    carry_on,
    decide,
    end_of,
    lines,
    open_gates,
    results_in,
    says,
    seen,
    shown_of,
)


class Careful(Command):
    """What the tool takes in its next version."""

    dry: bool = False


SHELL = [says("", *(call("shell.run", command=name) for name in "abc")), says("Done.")]
SAID = st.permutations([("1/0/human", "reject"), ("1/1/human", "approve"), ("1/2/human", "edit")])


async def test_what_ran_before_a_gate_does_not_run_again() -> None:
    """T-01: a free call, then a gated one; the free one ran once, however often the turn is taken up."""
    world = World()
    registry, _ = site(
        [says("", call("touch", name="a"), call("shell.run", command="b")), says("Done.")], world.tools()
    )
    waiting = await carry_on(registry)
    for _ in range(3):
        waiting = await carry_on(registry, waiting)
    await carry_on(registry, decide(waiting, "1/1/human"))
    assert world.times == {("touch", "a"): 1, ("shell.run", "b"): 1}


@given(SAID, st.lists(st.booleans(), min_size=3, max_size=3))
@settings(max_examples=examples(100))
async def test_each_call_gets_its_own_decision(order: list[tuple[str, str]], taken_up: list[bool]) -> None:
    """T-02: three at once, decided in any order, with the turn taken up in between: 100 random orders."""
    world = World()
    tools = world.tools()
    registry, provider = site(SHELL, tools)
    ledger = await carry_on(registry)
    assert open_gates(ledger) == ["1/0/human", "1/1/human", "1/2/human"]
    shell = next(each for each in tools if each.name == "shell.run")
    edited = {"command": "C"}
    looks = shown_of(shell, edited)
    for (path, decided), again in zip(order, taken_up, strict=True):
        said: dict[str, JSON] = {"input": edited, "digest": looks.digest, **looks.recorded} if decided == "edit" else {}
        ledger = decide(ledger, path, "approve" if decided == "edit" else decided, **said)
        if again and View(ledger).paused():
            assert await carry_on(registry, ledger) == ledger
    await carry_on(registry, ledger)
    assert world.done == [("shell.run", "b"), ("shell.run", "C")]
    rejected, approved, changed = results_in(provider.asked[1])
    assert rejected.startswith("Error (rejected)")
    assert approved.startswith("did b")
    assert "did C" in changed


async def test_many_gates_are_asked_at_once_and_each_is_decided_once() -> None:
    """T-03: five approvals stand side by side; deciding one asks none again; each call runs once, after the last."""
    world = World()
    registry, provider = site(
        [says("", *(call("shell.run", command=str(n)) for n in range(5))), says("Done.")], world.tools()
    )
    ledger = await carry_on(registry)
    gates = [f"1/{n}/human" for n in range(5)]
    assert open_gates(ledger) == gates
    for n, path in enumerate([gates[3], gates[0], gates[4], gates[1], gates[2]], 1):
        assert world.done == []
        ledger = await carry_on(registry, decide(ledger, path))
        assert len(open_gates(ledger)) == 5 - n
    assert all(lines(ledger).count(f"{path} action_call") == 1 for path in gates)
    assert world.done == [("shell.run", str(n)) for n in range(5)]
    assert len(provider.asked) == 2


async def test_a_rejection_skips_nobody_else() -> None:
    """T-05: one rejected among two that need nobody; both ran once, three results, then the model is asked once."""
    world = World()
    batch = says("", call("touch", name="a"), call("shell.run", command="b"), call("touch", name="c"))
    registry, provider = site([batch, says("Done.")], world.tools())
    ledger = await carry_on(registry, decide(await carry_on(registry), "1/1/human", "reject", reason="No."))
    assert world.done == [("touch", "a"), ("touch", "c")]
    assert results_in(provider.asked[1]) == ["touched a", "Error (rejected): No.", "touched c"]
    assert (len(provider.asked), end_of(ledger) is not None) == (2, True)


async def test_the_model_that_asks_for_the_original_again_is_asked_about_again() -> None:
    """T-06: the history shows the edited call with a note; a second call of the original is a new approval."""
    world = World()
    tools = world.tools()
    original = call("shell.run", command="rm a")
    registry, provider = site([says("", original), says("", original), says("Done.")], tools)
    edited = {"command": "rm -i a"}
    looks = shown_of(next(each for each in tools if each.name == "shell.run"), edited)
    waiting = await carry_on(registry)
    ledger = await carry_on(registry, decide(waiting, "1/0/human", input=edited, digest=looks.digest, **looks.recorded))
    assert open_gates(ledger) == ["2/0/human"]
    assert world.done == [("shell.run", "rm -i a")]
    asked = next(m for m in seen(provider.asked[1]) if isinstance(m, AssistantMessage))
    assert asked.calls[0].arguments == edited
    assert results_in(provider.asked[1])[0].startswith("[A person changed the input of this call.]\n\n")


async def test_a_model_that_fails_after_an_approved_call_costs_only_the_question() -> None:
    """T-12: a 500 right after the call: its result is kept, only the model is asked again, also by another turn."""
    world = World()
    down = ProviderError("HTTP 500", code="server_error", retryable=True, wait_seconds=0)
    registry, provider = site([says("", call("shell.run", command="b")), [down, down, says("Done.")]], world.tools())
    final = await carry_on(registry, decide(await carry_on(registry), "1/0/human"))
    assert world.done == [("shell.run", "b")]
    assert len(provider.asked) == 4
    assert end_of(final)
    registry, provider = site([says("", call("shell.run", command="b")), [down]], world.tools())
    broken = await carry_on(registry, decide(await carry_on(registry), "1/0/human"))
    end = end_of(broken)
    assert end
    assert (end["state"], end["stop_reason"]) == ("failed", "model_error")
    past = PastTurn(1, "go", Outputs(broken).in_order())
    again, asked = site(ScriptedProvider(lambda _: says("It did b.")), world.tools())
    await carry_on(again, services=Site(prompt=2, past=[past]), payload={"continues": 1})
    assert "did b\nexit: 0 (1.2s)" in results_in(asked.asked[0])
    assert world.times["shell.run", "b"] == 2  # once in each of the two turns


async def test_after_a_restart_the_history_is_one_call_and_one_result() -> None:
    """T-13: approved, taken up by a fresh process from what is recorded; then another turn works on top of it."""
    script = [says("I will.", call("shell.run", "call_1", command="b")), says("Done.")]
    waiting = await carry_on(site(script, World().tools())[0])
    approved = Ledger(tuple(decide(waiting, "1/0/human")))
    world = World()
    registry, provider = site(script, world.tools())
    final = await carry_on(registry, approved)
    told = seen(provider.asked[0])
    assert [m.call_id for m in told if isinstance(m, ResultMessage)] == ["call_1"]
    assert [c.call_id for m in told if isinstance(m, AssistantMessage) for c in m.calls] == ["call_1"]
    past = PastTurn(1, "go", Outputs(final).in_order())
    registry, provider = site(ScriptedProvider(lambda _: says("Yes.")), world.tools())
    await carry_on(registry, services=Site(prompt=2, past=[past]))
    assert problems(seen(provider.asked[0])) == []
    assert results_in(provider.asked[0]) == ["did b\nexit: 0 (1.2s)"]


def with_id(call_id: str, command: str) -> ToolRequest:
    return call("shell.run", call_id, command=command)


@pytest.mark.parametrize("ids", [("same", "same"), ("", ""), ("old", "new"), ("c2_1_1", ""), ("", "c2_1_0")])
async def test_ids_of_a_model_bind_nothing(ids: tuple[str, str]) -> None:
    """T-16: twice the same, empty, used in an earlier turn, or one of ours: two approvals, and a valid history."""
    world = World()
    earlier = await carry_on(site([says("", call("fx.read", "old", a=1)), says("Done.")], World().tools())[0])
    past = [PastTurn(1, "go", Outputs(earlier).in_order())]
    registry, provider = site(
        lambda request: says("Done.") if len(results_in(request)) == 3 else says("", *map(with_id, ids, "ab")),
        world.tools(),
    )
    services = Site(prompt=2, past=past)
    waiting = await carry_on(registry, services=services)
    assert open_gates(waiting) == ["1/0/human", "1/1/human"]
    half = decide(waiting, "1/1/human", "reject")
    final = await carry_on(registry, decide(half, "1/0/human"), services=services)
    assert world.done == [("shell.run", "a")]
    assert problems(seen(provider.asked[-1])) == []
    told = [*turn_messages(past[0], ids_used := CallIds(), Limits())]
    told += turn_messages(PastTurn(2, "go", Outputs(final).in_order()), ids_used, Limits())
    assert problems(told) == []


async def test_a_tool_that_vanished_while_it_waited_does_not_run() -> None:
    """T-19: the approval is of no use, the model is told why and what there is, and the gate is closed."""
    world = World()
    waiting = await carry_on(site(SHELL, world.tools())[0])
    rest = [each for each in world.tools() if each.name != "shell.run"]
    registry, provider = site(SHELL, rest)
    for path in ("1/0/human", "1/1/human", "1/2/human"):
        waiting = decide(waiting, path)
    final = await carry_on(registry, waiting)
    assert world.done == []
    why = "The tool changed before this call ran, so nothing was done. No tool 'shell_run'."
    assert all(told.startswith(f"Error (tool_changed): {why}") for told in results_in(provider.asked[0]))
    assert end_of(final)


@pytest.mark.parametrize("changed", ["schema", "renamed"])
async def test_a_tool_that_changed_while_it_waited_does_not_run(changed: str) -> None:
    """T-19: approved on one version, taken up on another: nothing runs."""
    world = World()
    waiting = await carry_on(site([SHELL[0], says("Done.")], world.tools())[0])

    @tool("shell.run" if changed == "schema" else "shell.exec")
    async def other(call: ToolCall[Careful]) -> None:
        world.done.append(("other", call.input.command))

    for path in ("1/0/human", "1/1/human", "1/2/human"):
        waiting = decide(waiting, path)
    final = await carry_on(site(SHELL, [other])[0], waiting)
    codes = [View(final).result(f"1/{n}").payload["code"] for n in range(3)]  # type: ignore[union-attr]
    assert codes == ["tool_changed"] * 3
    assert world.done == []


async def test_a_result_and_what_follows_from_it_are_one_record() -> None:
    """T-20: what a call did, said and changed stands in one record: no crash parts them, and none does it twice."""
    for n in range(1, 9):
        for after in (False, True):
            world = World()
            registry, _ = site([says("", call("report.write", name="a")), says("Done.")], world.tools())
            journal = CrashingJournal(crash=CrashPoint(n, after))
            try:
                await carry_on(registry, journal=journal)
            except Crash:
                steps = lines(journal.ledger)
                parts = ["1/0 file", "1/0 widget", "1/0 action_result"]
                assert [part in steps for part in parts] in ([True] * 3, [False] * 3), (n, after)
                ledger = await carry_on(registry, journal.ledger)
                assert end_of(ledger) or open_gates(ledger) == ["1/0/card1"]
            assert world.times["report.write", "a"] <= 1, (n, after)


class CutOff(ScriptedProvider):
    """Its first answer ends in the middle of a call's arguments."""

    async def ask(self, request: Request) -> Any:
        self.asked.append(request)
        if len(self.asked) == 1:
            yield TextDelta('I will {"command": "rm')
            raise ProviderError("Cut off.", code="stream_broken", retryable=True, wait_seconds=0)
        yield self.script(request)  # type: ignore[operator]


async def test_a_call_that_was_cut_off_in_the_stream_is_none() -> None:
    """T-31: asked again once; no part of the first answer is recorded, and no tool of it runs."""
    world = World()

    def script(request: Request) -> Answer:
        return says("All is done.")

    provider = CutOff(script)
    ledger = await carry_on(site(provider, world.tools())[0])
    assert len(provider.asked) == 2
    assert world.done == []
    assert [step.payload["text"] for step in ledger if step.type == "text"] == ["All is done."]
    assert "1/0 action_call" not in lines(ledger)
