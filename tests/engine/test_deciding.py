"""Programs that run policies without a site take people's decisions by the path of the call."""

from __future__ import annotations

from typing import Any

import pytest

from agents.engine import Action, Context, Ledger, PolicyRegistry, Step, answer, approve, reject, run, text
from agents.engine.tools.tool import ToolCall, tool
from agents.engine.view import View
from tests.engine.cast import Command, World, site
from tests.engine.support import call, decide, end_of, lines, open_gates, results_in, says

SCRIPT = [says("I will.", call("shell.run", command="ls")), says("Done.")]


async def carry_on(registry: PolicyRegistry, ledger: Ledger = Ledger()) -> Ledger:  # noqa: B008 - it is frozen
    return await run("agent", {"text": "go"}, registry, ledger)


@pytest.mark.parametrize("path", ["1/0", "1/0/human"])
async def test_an_approved_call_runs_as_it_was_shown(world: World, path: str) -> None:
    """And the turn goes on from the ledger that `approve` returns, once (S33, S34)."""
    registry, _ = site(SCRIPT, world.tools())
    waiting = await carry_on(registry)
    approved = approve(waiting, path, by="user:7")
    assert lines(approved)[len(waiting) :] == ["1/0/human action_result", ". resume"]
    assert len(waiting) == len(await carry_on(registry, waiting))
    final = await carry_on(registry, approved)
    assert world.done == [("shell.run", "ls")]
    assert (end_of(final) or {})["state"] == "completed"
    assert await carry_on(registry, final) == final


async def test_a_rejected_call_never_runs(world: World) -> None:
    """The model reads the reason (S35)."""
    registry, provider = site(SCRIPT, world.tools())
    await carry_on(registry, reject(await carry_on(registry), "1/0", by="user:7", reason="Not now."))
    assert world.done == []
    assert results_in(provider.asked[1]) == ["Error (rejected): Not now."]


async def test_an_edited_call_runs_as_it_was_edited(world: World) -> None:
    """What runs is what was approved (S36)."""
    registry, _ = site(SCRIPT, world.tools())
    await carry_on(registry, approve(await carry_on(registry), "1/0", by="user:7", input={"command": "pwd"}))
    assert world.done == [("shell.run", "pwd")]


@pytest.mark.parametrize("edited", [{"command": "rm"}, {"cmd": "ls"}])
async def test_an_edit_that_shows_something_else_does_not_run(edited: dict[str, Any]) -> None:
    """Its facts were not those that the person saw, or it is no input of the tool."""
    ran: list[str] = []

    @tool("shell.run", facts=lambda call: [f"It runs {call.input.command}"])
    async def changed(call: ToolCall[Command]) -> None:
        ran.append(call.input.command)

    registry, _ = site(SCRIPT, [changed])
    final = await carry_on(registry, approve(await carry_on(registry), "1/0", by="user:7", input=edited))
    assert ran == []
    result = View(final).result("1/0")
    assert result
    assert result.failed


async def test_a_question_of_a_policy_is_answered() -> None:
    """By a text or what fits its schema, at the path of its call; several wait for each other (S129)."""
    registry, answers = PolicyRegistry(), list[Any]()

    @registry.register("agent")
    async def asks(action: Action, ctx: Context) -> list[Step]:
        many = {"type": "object", "required": ["many"]}
        asked: dict[str, Any] = {
            "a": {"question": "Which?"},
            "b": {"ask": "question", "question": "How many?", "schema": many},
        }
        questions = (ctx.call(Action("human", payload), key=key) for key, payload in asked.items())
        answers.extend(said[-1].payload["answer"] for said in await ctx.gather(*questions))
        return [text("agent", "Thanks.")]

    waiting = await carry_on(registry)
    for path, wrong in (("a", {"many": [2]}), ("a", " "), ("b", "one"), ("b", {"few": 1})):
        with pytest.raises(ValueError, match=f"no answer to the question at '{path}'"):
            answer(waiting, path, by="user:ann", answer=wrong)
    half = answer(waiting, "b", by="user:ann", answer={"many": [2]})
    assert open_gates(half) == ["a"]
    assert lines(half)[-1] == "b action_result"
    await carry_on(registry, answer(half, "a", by="user:ann", answer="one"))
    assert answers == ["one", {"many": [2]}]


async def test_an_interrupted_call_is_told_of(world: World) -> None:
    """The owner says what became of it; it runs again only if they say so (R15)."""
    registry, _ = site(SCRIPT, world.tools())
    approved = approve(await carry_on(registry), "1/0", by="user:7")
    final = await carry_on(registry, approved)
    began = next(n for n, step in enumerate(final) if step.type == "action_start" and step.path == "1/0")
    world.done.clear()
    asked = await carry_on(registry, final[: began + 1])
    assert (open_gates(asked), world.done) == (["1/0/card1"], [])
    with pytest.raises(ValueError, match="one of it_ran, it_did_not, run_again, not 'yes'"):
        answer(asked, "1/0", by="user:7", answer="yes")
    with pytest.raises(ValueError, match="waits for another decision: it_ran, it_did_not, run_again"):
        approve(asked, "1/0", by="user:7")
    await carry_on(registry, answer(asked, "1/0", by="user:7", answer="run_again"))
    assert world.done == [("shell.run", "ls")]


async def test_who_is_not_asked_cannot_decide(world: World) -> None:
    """The error names the calls that wait; a decision stands once."""
    registry, _ = site(SCRIPT, world.tools())
    waiting = await carry_on(registry)
    for path in ("9", "1"):
        with pytest.raises(ValueError, match=f"nobody is asked about the call at '{path}'; .* person: 1/0"):
            reject(waiting, path, by="user:7")
    with pytest.raises(ValueError, match="waits for another decision: approve, reject"):
        answer(waiting, "1/0", by="user:7", answer="yes")
    with pytest.raises(ValueError, match="person: none"):
        approve(approve(waiting, "1/0", by="user:7"), "1/0", by="user:7")
    assert decide(waiting, "1/0/human")[-1].type == approve(waiting, "1/0", by="user:7")[-1].type == "resume"
