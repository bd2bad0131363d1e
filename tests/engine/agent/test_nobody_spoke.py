"""A turn in which nobody spoke, or that goes on: what the model is told of it, and what later turns read (S4)."""

from __future__ import annotations

from typing import Any

import pytest

from agents.engine import Action, Context, Step, run
from agents.engine.agent.projection import GO_ON, NOBODY_SPOKE
from agents.engine.interfaces.messages import AssistantMessage, ResultMessage, UserMessage
from agents.engine.interfaces.services import PastTurn
from agents.engine.ledger import EMPTY
from agents.engine.outputs.timeline import Outputs
from tests.engine.cast import World, site
from tests.engine.support import ScriptedProvider, Site, call, carry_on, decide, end_of, says, seen

BEGINNINGS: list[tuple[dict[str, Any], str]] = [({}, NOBODY_SPOKE), ({"continues": 1}, GO_ON)]
"""The payloads of turns without a message, and their lines."""
READ = says("I look.", call("fx.read", a=1))


@pytest.mark.parametrize(("payload", "line"), BEGINNINGS)
async def test_it_sends_no_message_of_a_user(world: World, payload: dict[str, Any], line: str) -> None:
    """The line goes beside the history of each of its rounds; the system text is the usual one."""
    registry, provider = site([READ, says("Done.")], world.tools(), prompt="Be kind.")
    await carry_on(registry, payload=payload)
    assert [(request.line, request.system) for request in provider.asked] == [(line, "Be kind.")] * 2
    assert seen(provider.asked[0]) == []
    assert [type(message) for message in seen(provider.asked[1])] == [AssistantMessage, ResultMessage]


@pytest.mark.parametrize(("payload", "line"), BEGINNINGS)
async def test_a_server_that_insists_is_sent_the_line_as_the_users(
    world: World, payload: dict[str, Any], line: str
) -> None:
    """It stands in the history, so that every round begins with it, and nowhere else."""
    provider = ScriptedProvider([READ, says("Done.")], needs_user=True)
    await carry_on(site(provider, world.tools())[0], payload=payload)
    assert [request.line for request in provider.asked] == ["", ""]
    assert [seen(request)[0] for request in provider.asked] == [UserMessage(line)] * 2


@pytest.mark.parametrize("needs_user", [False, True])
@pytest.mark.parametrize(
    "payload", [{"text": "go"}, {"files": [{"id": 1, "name": "a.txt", "size": 1, "path": "a.txt"}]}]
)
async def test_a_message_needs_no_line(world: World, needs_user: bool, payload: dict[str, Any]) -> None:
    """A file without words is a message, too."""
    provider = ScriptedProvider([says("Done.")], needs_user=needs_user)
    await carry_on(site(provider)[0], payload=payload)
    (request,) = provider.asked
    assert request.line == ""
    assert [type(message) for message in seen(request)] == [UserMessage]


async def test_an_agent_that_is_called_without_a_text_is_told_so(world: World) -> None:
    registry, provider = site([says("It is noon.")])

    @registry.register("flow")
    async def flow(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("agent", {}))

    await run("flow", {}, registry)
    assert (seen(provider.asked[0]), provider.asked[0].line) == ([], NOBODY_SPOKE)


@pytest.mark.parametrize("needs_user", [False, True])
async def test_later_turns_read_it_as_it_was_sent(world: World, needs_user: bool) -> None:
    """The history only grows, so that the prompt caches of providers hit: the line, which goes, stands behind it."""
    past = [PastTurn(1, "Hi.", Outputs(await carry_on(site([says("Hello.")])[0])).in_order())]
    provider = ScriptedProvider([says("unused"), READ, says("Noon."), says("Yes.")], needs_user=needs_user)
    registry, _ = site(provider, world.tools())
    silent = await carry_on(registry, payload={}, services=Site(prompt=2, past=past))
    past.append(PastTurn(2, None, Outputs(silent).in_order()))
    await carry_on(registry, EMPTY, services=Site(prompt=3, past=past))
    first, second, later = (seen(request) for request in provider.asked)
    assert second[: len(first)] == first
    assert later[: len(second)] == second
    assert later[len(second) :] == [AssistantMessage("Noon."), UserMessage("go")]
    spoken = [message.text for message in later if isinstance(message, UserMessage)]
    assert spoken == (["Hi.", NOBODY_SPOKE, "go"] if needs_user else ["Hi.", "go"])
    assert [bool(request.line) for request in provider.asked] == ([False] * 3 if needs_user else [True, True, False])


@pytest.mark.parametrize("before", [False, True])
async def test_the_setting_may_change_while_a_turn_waits(world: World, before: bool) -> None:
    """A recorded round is never asked again; the next one is asked as the server wants it by then."""
    script = [says("I will.", call("shell.run", command="ls")), says("Done.")]
    first, second = (ScriptedProvider(script, needs_user=needs_user) for needs_user in (before, not before))
    waiting = await carry_on(site(first, world.tools())[0], payload={})
    ledger = await carry_on(site(second, world.tools())[0], decide(waiting, "1/0/human"), payload={})
    assert (end_of(ledger) or {})["state"] == "completed"
    assert world.done == [("shell.run", "ls")]
    assert [len(provider.asked) for provider in (first, second)] == [1, 1]
    asked = second.asked[0]
    assert asked.line == (NOBODY_SPOKE if before else "")
    assert isinstance(seen(asked)[0], AssistantMessage if before else UserMessage)
