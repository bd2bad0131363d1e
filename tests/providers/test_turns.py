"""Whole turns in every protocol: what is sent after turns of every end, and what comes of answers that were cut.

On a plain server, and on one that refuses roles that do not take turns, as Mistral's API and many templates do.
"""

from __future__ import annotations

from typing import Any

import pytest

from agents.engine import Action, Context, run
from agents.engine.agent.model import model
from agents.engine.agent.projection import GO_ON, NEXT, NOBODY_SPOKE, TURN_ENDED
from agents.engine.agent.turn import agent
from agents.engine.closing import close_turn
from agents.engine.interfaces.messages import AssistantMessage, CallRequest, Message, ResultMessage, UserMessage
from agents.engine.interfaces.provider import Provider
from agents.engine.interfaces.services import PastTurn
from agents.engine.ledger import EMPTY, Ledger, Step, text
from agents.engine.outputs.kinds import TextOutput
from agents.engine.outputs.timeline import Outputs
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.view import View
from agents.providers.chat.role_alternation import WENT_ON, alternate_roles
from tests.engine.cast import World
from tests.engine.journals import numbered
from tests.engine.support import Site, carry_on, end_of
from tests.providers.support import asks
from tests.wire.script import Call, Reply
from tests.wire.server import WireServer

READ = Call("fx_read", {"a": 1})
FILED = Call("report_write", {"name": "q"})
GATED = Call("shell_run", {"command": "x"})
ANSWERED = ("completed", "text")
NOTICE = "The answer was cut off at the model's output limit."


@pytest.fixture
def site(speaker: Provider) -> PolicyRegistry:
    """An agent with the cast's tools, whose model speaks the protocol; `short` has one round."""
    registry, world = PolicyRegistry(), World()
    registry.register("model")(model(speaker))
    registry.register("agent")(agent(tools=world.tools(), prompt="You are a test."))
    registry.register("short")(agent(tools=world.tools(), prompt="You are a test.", rounds=1))
    return registry


def ended(ledger: Ledger) -> tuple[str, str]:
    end = end_of(ledger)
    assert end
    return end["state"], end["stop_reason"]


def spoken(wire: WireServer, number: int = -1) -> list[tuple[str, str]]:
    """Who spoke in a request, and what; a call and its result have roles of their own."""
    body = wire.requests[number].body
    items = body.get("messages") or body["input"]
    theirs = [item for item in items if item.get("role") not in ("system", "developer")]
    return [(item.get("role") or item["type"], _text(item)) for item in theirs]


def _site_line(body: dict[str, Any]) -> str:
    """The site's own line: a last item in a request to Responses, else the end of the system message; "" for none."""
    if "input" in body:
        assert body.get("instructions", "You are a test.") == "You are a test."
        return "".join(_text(item) for item in body["input"][-1:] if item.get("role") == "developer")
    system = body["messages"][0]["content"] if body["messages"][0]["role"] == "system" else ""
    return next((line for line in (NOBODY_SPOKE, GO_ON) if system.endswith(line)), "")


def _text(item: dict[str, Any]) -> str:
    content = item.get("content") or item.get("output") or ""
    return content if isinstance(content, str) else "\n\n".join(part["text"] for part in content)


async def _stopped(wire: WireServer, site: PolicyRegistry, protocol: str) -> Ledger:
    wire.script = [asks(protocol, "", GATED)]
    waiting = await carry_on(site)
    return waiting.extend(numbered(waiting, close_turn(View(waiting), "cancelled", "cancelled", "Stopped.")))


async def _out_of_rounds(wire: WireServer, site: PolicyRegistry, protocol: str) -> Ledger:
    wire.script = [asks(protocol, "I look.", READ)]
    return await carry_on(site, policy="short")


async def _terminated(wire: WireServer, site: PolicyRegistry, protocol: str) -> Ledger:
    wire.script = [Reply('{"tool": "fx_read", "parameters": {"a": 1}, "terminate": true}')]
    return await carry_on(site) if protocol == "json" else await _stopped(wire, site, protocol)


async def _stopped_at_once(wire: WireServer, site: PolicyRegistry, protocol: str) -> Ledger:
    return EMPTY


async def test_a_file_is_told_with_the_result_of_the_call_that_made_it(
    wire: WireServer, site: PolicyRegistry, protocol: str
) -> None:
    """The model does not speak last, and nothing comes between calls and results (R21)."""
    batch = [FILED] if protocol == "json" else [FILED, READ]
    wire.script = [asks(protocol, "", *batch), Reply("Done.")]
    assert ended(await carry_on(site)) == ANSWERED
    told = [text for role, text in spoken(wire) if role not in ("assistant", "function_call")]
    assert [text.removeprefix("[tool_result:report_write] ") for text in told] == [
        "go",
        "wrote q\n\n[file a.txt] S",
        *(["read 1"] if protocol != "json" else []),
    ]


@pytest.mark.parametrize("before", [_stopped, _out_of_rounds, _terminated, _stopped_at_once])
@pytest.mark.parametrize("payload", [{"text": "next"}, {"continues": 1}, {}], ids=["said", "continued", "unsaid"])
async def test_whatever_a_turn_ended_with_the_next_one_is_answered(
    wire: WireServer, site: PolicyRegistry, *, protocol: str, strict: bool, before: Any, payload: dict[str, Any]
) -> None:
    """A message, Continue, and a turn that nobody asked for; and what is told of both in the turn after them (S4)."""
    first = await before(wire, site, protocol)
    past = [PastTurn(1, "go", Outputs(first).in_order())]
    wire.requests.clear()
    wire.script = [asks(protocol, "", READ), Reply("Done.")]
    second = await carry_on(site, payload=payload, services=Site(prompt=2, past=past))
    assert ended(second) == ANSWERED
    line = "" if "text" in payload else GO_ON if "continues" in payload else NOBODY_SPOKE
    if line and not strict:
        assert [_site_line(request.body) for request in wire.requests] == [line, line]
        assert line not in str(spoken(wire, 0) + spoken(wire, 1))
    else:
        assert spoken(wire, 0)[-1] == ("user", line or "next")
        assert [_site_line(request.body) for request in wire.requests] == ["", ""]
    assert spoken(wire, 1)[: len(spoken(wire, 0))] == spoken(wire, 0)

    wire.script = [Reply("Yes.")]
    outputs = Outputs(second).in_order()
    past.append(PastTurn(2, payload.get("text"), outputs, continues="continues" in payload))
    assert ended(await carry_on(site, services=Site(prompt=3, past=past))) == ANSWERED
    told, now = spoken(wire, 1), spoken(wire)
    assert now[: len(told)] == told, "the beginning stays, for the prompt's cache"
    assert now[len(told) :] == [("assistant", "Done."), ("user", "go")]


USER, MODEL = text("user:1", "Does it rain?"), text("model", "Hm.")


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([], []),
        ([USER], [("user", "Does it rain?")]),
        ([USER, MODEL], [("user", "Does it rain?"), ("assistant", "Hm."), ("user", NEXT)]),
        ([MODEL, USER], [("assistant", "Hm."), ("user", "Does it rain?")]),
        ([MODEL], [("assistant", "Hm."), ("user", NEXT)]),
    ],
)
async def test_a_model_that_is_given_a_ledger_reads_what_is_true(
    wire: WireServer, site: PolicyRegistry, *, strict: bool, steps: list[Step], told: list[tuple[str, str]]
) -> None:
    """That nobody spoke stands beside an empty one; a server that insists is told so before the model's words, too.

    The model's own words are followed by a word to go on, whatever the server.
    """

    @site.register("plain")
    async def plain(action: Action, ctx: Context) -> list[Step]:
        return await ctx.call(Action("model", {"ledger": Ledger(tuple(steps)).numbered()}))

    wire.script = [Reply("Yes.")]
    await run("plain", {}, site)
    nobody = strict and told[:1] != [("user", "Does it rain?")]
    assert spoken(wire) == ([("user", NOBODY_SPOKE)] if nobody else []) + told
    assert _site_line(wire.requests[0].body) == ("" if strict or told else NOBODY_SPOKE)


async def test_a_turn_that_ended_in_a_result_is_closed_for_a_server_that_insists(
    wire: WireServer, site: PolicyRegistry, protocol: str, strict: bool
) -> None:
    """There, no user may speak right after a result; elsewhere, nothing is put into the model's mouth."""
    first = await _stopped(wire, site, protocol)
    wire.script = [Reply("Done.")]
    past = [PastTurn(1, "go", Outputs(first).in_order())]
    assert ended(await carry_on(site, services=Site(prompt=2, past=past))) == ANSWERED
    *_, before, now = spoken(wire)
    assert now == ("user", "go")
    assert (before == ("assistant", TURN_ENDED)) is strict
    assert (TURN_ENDED in str(spoken(wire))) is strict


def test_neighbours_of_one_role_are_joined() -> None:
    """And between a result and a person's words stands something of the model's."""
    asked = AssistantMessage("I look.", (CallRequest("c1", "echo", {}),), ({"type": "b"},))
    messages: list[Message] = [
        UserMessage("One.", ("[file]",)),
        UserMessage("Two."),
        AssistantMessage("", (), ({"type": "dropped"},)),
        AssistantMessage("Three.", (), ({"type": "a"},)),
        asked,
        ResultMessage("c1", "echo", "x"),
        UserMessage("Four."),
    ]
    assert alternate_roles(messages) == [
        UserMessage("One.\n\n[file]\n\nTwo."),
        AssistantMessage("Three.\n\nI look.", asked.calls, ({"type": "a"}, {"type": "b"})),
        messages[5],
        AssistantMessage(WENT_ON),
        UserMessage("Four."),
    ]


@pytest.mark.parametrize("text", ["", "I write it now."])
async def test_a_call_that_was_cut_is_told_to_the_model(
    wire: WireServer, site: PolicyRegistry, protocol: str, text: str
) -> None:
    """Nothing runs, the model reads why, and the turn goes on; with words beside the call or none (S27)."""
    whole = asks(protocol, text, Call("report_write", {"name": "Quarterly report of the year"}))
    cut = Reply(whole.text, whole.calls, incomplete="max_output_tokens")
    if protocol == "json":
        cut = Reply(whole.text[: whole.text.index("Quarterly")] * 2, incomplete="max_output_tokens")
    wire.script = [cut, asks(protocol, "", READ), Reply("Done.")]
    ledger = await carry_on(site)
    assert ended(ledger) == ANSWERED
    assert [s.path for s in ledger if s.type == "file"] == []
    assert "cut off" in spoken(wire, 1)[-1][1]
    assert NOTICE not in str(ledger.steps)


async def test_a_text_that_was_cut_is_kept_and_says_so(wire: WireServer, site: PolicyRegistry, protocol: str) -> None:
    """A notice below it, for people and for the model of the next turn; the turn is completed (R2)."""
    wire.script = [Reply("Half of this is missing.", incomplete="max_output_tokens"), Reply("The rest.")]
    first = await carry_on(site)
    assert ended(first) == ANSWERED
    texts = [o for o in Outputs(first).in_order() if isinstance(o, TextOutput)]
    assert [(o.text, o.role_hint) for o in texts] == [("Half of this", ""), (NOTICE, "system")]
    past = [PastTurn(1, "go", Outputs(first).in_order())]
    assert ended(await carry_on(site, services=Site(prompt=2, past=past))) == ANSWERED
    assert "Half of this" in str(spoken(wire))
    assert NOTICE in str(spoken(wire))
