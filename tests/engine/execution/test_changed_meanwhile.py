"""A tool that is gone or has another input by the time a person has decided on a call: the decision counts."""

from __future__ import annotations

from typing import Any

import pytest

from agents.engine.execution.effect import as_policy
from agents.engine.runtime.action import Action
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.tools.tool import Tool, ToolCall, tool
from agents.engine.view import View
from tests.engine.cast import Amount, Command, World, site
from tests.engine.journals import Crash, CrashingJournal, CrashPoint
from tests.engine.support import ScriptedProvider, call, carry_on, decide, end_of, open_gates, results_in, says

RUN = [says("", call("shell.run", command="rm")), says("Done.")]
REPORT = [says("", call("report.write", name="q")), says("Done.")]


class Careful(Command):
    why: str


class More(Amount):
    to: str


def gone(tools: list[Tool], name: str) -> list[Tool]:
    return [each for each in tools if each.name != name]


def stricter(tools: list[Tool]) -> list[Tool]:
    """The same tools, but the command needs another input."""

    @tool("shell.run")
    async def careful(call: ToolCall[Careful]) -> None:
        raise AssertionError("it ran")

    return [*gone(tools, "shell.run"), careful]


SAID = [
    ("reject", {"reason": "Never delete that."}, "Error (rejected): Never delete that."),
    ("expired", {}, "Error (expired): This was not done in time."),
    ("approve", {}, "Error (tool_changed): The tool changed before this call ran, so nothing was done. "),
]


@pytest.mark.parametrize(("decided", "said", "told"), SAID)
@pytest.mark.parametrize("changed", [lambda tools: gone(tools, "shell.run"), stricter])
async def test_the_decision_is_what_the_model_reads(
    world: World, decided: str, said: dict[str, Any], told: str, changed: Any
) -> None:
    """The decision, not that the tool is unknown (S35); if approved, it reads that too, because it may call again."""
    waiting = await carry_on(site(RUN, world.tools())[0])
    registry, provider = site(RUN, changed(world.tools()))
    final = await carry_on(registry, decide(waiting, "1/0/human", decided, **said))
    (read,) = results_in(provider.asked[0])
    if decided == "approve":
        assert read.startswith(told)
        assert "why: Field required" in read or "No tool 'shell_run'. Call " in read
    else:
        assert read == told
    assert world.done == []
    assert end_of(final)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("it_ran", "It was interrupted before its output was recorded. The owner says it ran."),
        ("it_did_not", "It was interrupted. The owner says it did not run."),
        ("run_again", "The tool changed meanwhile. No tool 'report_write'. Call "),
    ],
)
async def test_what_the_owner_says_of_an_interrupted_call_counts_too(world: World, answer: str, told: str) -> None:
    """Whatever happened to its tool."""
    journal = CrashingJournal(crash=CrashPoint(3))
    with pytest.raises(Crash):
        await carry_on(site(REPORT, world.tools())[0], journal=journal)
    waiting = await carry_on(site(REPORT, world.tools())[0], journal.ledger)
    registry, provider = site(REPORT, gone(world.tools(), "report.write"))
    assert open_gates(waiting) == ["1/0/card1"]
    assert await carry_on(registry, waiting) == waiting
    await carry_on(registry, decide(waiting, "1/0/card1", answer))
    code = "interrupted" if answer == "run_again" else answer
    assert results_in(provider.asked[0])[0].startswith(f"Error ({code}): {told}")
    assert world.times["report.write", "q"] == 1


@pytest.mark.parametrize(("decided", "said", "told"), SAID)
async def test_a_workflow_reads_the_decision_as_well(decided: str, said: dict[str, Any], told: str) -> None:
    """Where a policy calls the tool itself, without a model."""

    def registry(tool: Tool) -> PolicyRegistry:
        made, _ = site(ScriptedProvider([]))
        made.register("flow")(_flow)
        made.register(tool.name)(as_policy(tool))
        return made

    async def _flow(action: Action, ctx: Any) -> Any:
        return await ctx.call(Action("do", {"amount": 1}))

    @tool("do")
    async def before(call: ToolCall[Amount]) -> None:
        raise AssertionError("it ran")

    @tool("do")
    async def after(call: ToolCall[More]) -> None:
        raise AssertionError("it ran")

    waiting = await carry_on(registry(before), policy="flow", payload={})
    final = await carry_on(registry(after), decide(waiting, "1/human", decided, **said), policy="flow", payload={})
    result = View(final).result("1")
    assert result
    assert f"Error ({result.payload['code']}): {result.payload['message']}".startswith(told)
