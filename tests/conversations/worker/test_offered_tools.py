"""The beginning of every request stays as it was, in long conversations with more tools than there is room for."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from agents.engine.agent.model import model
from agents.engine.agent.turn import agent
from agents.engine.interfaces.provider import Provider
from agents.engine.ledger import JSON
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.tools.plugin import Plugin, Round
from agents.engine.tools.tool import by_category
from agents.plugins.tools.choice import FOR_ROOM
from agents.plugins.tools.plugin import NOT_OFFERED, Tools
from agents.plugins.tools.tools import find
from agents.providers.chat.protocol import Chat
from agents.providers.common.server import ModelServer
from agents.providers.json.items import call_as_text
from agents.providers.json.protocol import JsonProtocol
from agents.providers.responses.protocol import Responses
from conversations.models import Conversation, Prompt, Step
from conversations.prompts.start import start_conversation, start_prompt
from conversations.worker.drafts import Drafts
from conversations.worker.runner import Runner
from tests.conversations.recorded import in_this_thread, taken
from tests.plugins.many_tools import GARDEN, KITCHEN, made, numbered, tokens
from tests.wire.script import Call, InOrder, Reply
from tests.wire.server import WireServer

TURNS = 30
GROUPS = (GARDEN, None, KITCHEN)
THREE_HUNDRED = [tool for n, group in enumerate(GROUPS) for tool in numbered(300, group)[n::3]]
GUEST = made("guest.greet", "Greet a guest")
ROOM = tokens(THREE_HUNDRED[:20])


class Guests(Plugin):
    """Pushes a tool while a guest is there: from the tenth turn to the twentieth."""

    name = "guests"
    turn = 0

    async def prepare(self, round: Round) -> None:
        if round.number == 1:
            Guests.turn += 1
        if 10 <= Guests.turn < 20:
            round.tools.append(GUEST)


def script(as_text: bool) -> list[Reply]:
    """All that the model says. Every third turn it looks for tools; in all it uses one that it has had from the first.

    `as_text`: it asks for calls by text.
    """
    replies = []
    for turn in range(TURNS):
        if turn % 3 == 0:
            replies.append(_asks(as_text, "tools_find", words=f"do work {100 + 7 * turn:03}"))
        replies += [_asks(as_text, "work_000", thing=f"no. {turn}"), Reply("Done.")]
    return replies


def _asks(as_text: bool, name: str, **arguments: JSON) -> Reply:
    return Reply(call_as_text("", name, arguments)) if as_text else Reply(calls=(Call(name, arguments),))


@pytest.fixture
def server() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


@pytest.fixture
def conversation(ann: User) -> Conversation:
    return start_conversation(ann)


@dataclass(frozen=True)
class Parts:
    """The parts of a request, as the model is sent them: its system text, each of its tools, and its messages."""

    system: str
    tools: list[str]
    messages: list[str]

    @classmethod
    def of(cls, raw: bytes) -> Parts:
        body: Any = json.loads(raw)
        messages, tools = body.get("input") or body["messages"], body.get("tools", [])
        system = messages.pop(0)["content"] if messages[0]["role"] == "system" else body["instructions"]
        written, tools_as_they_are = map(_as_sent, messages), [*map(_as_sent, tools)]
        assert ",".join(tools_as_they_are).encode() in raw
        return cls(system, tools_as_they_are or re.findall(r"^### .*", system, re.MULTILINE), list(written))


def _as_sent(value: JSON) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


async def worked(prompt: Prompt, provider: Provider) -> None:
    """Run the turn as a worker does."""
    claim = await in_this_thread(taken, prompt)
    await Runner(claim, "worker:test", in_this_thread, Drafts(in_this_thread), lambda: True)()
    await provider.aclose()


def went(conversation: Conversation) -> list[Any]:
    """The recorded choices by which tools have gone."""
    states = Step.objects.filter(conversation=conversation, type="state", actor="plugin:tools").order_by("seq")
    choices = [step.content["value"] for step in states]
    return [now for before, now in pairwise(choices) if set(now["gone"]) & {*before["chosen"], *before["added"]}]


@pytest.mark.django_db
@pytest.mark.parametrize("protocol", [Responses, Chat, JsonProtocol])
def test_thirty_turns_with_three_hundred_tools(
    *,
    protocol: Callable[[ModelServer], Provider],
    ann: User,
    conversation: Conversation,
    server: WireServer,
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
) -> None:
    """Each request has the tools of the one before, in their order, and then what was added; so have its messages.

    Something is missing only where a guest has gone, and where a turn began for which others had to make room. Both
    stand in the record of that round's answer.
    """
    monkeypatch.setattr(Guests, "turn", 0)
    settings.AGENTSITE_TOOL_TOKENS = ROOM
    server.script = InOrder(script(as_text=protocol is JsonProtocol))
    provider = protocol(ModelServer("none", server.url, models={"normal": "m"}))
    registry = PolicyRegistry()
    registry.register("model")(model(provider))
    registry.register("agent")(agent(tools=by_category([*THREE_HUNDRED, find]), plugins=[Guests, Tools]))
    monkeypatch.setattr("agents.registry.policies", lambda: registry)
    for turn in range(TURNS):
        prompt = start_prompt(conversation, ann, f"Turn {turn}.")
        async_to_sync(worked)(prompt, provider)
        prompt.refresh_from_db()
        assert prompt.state == "completed", prompt.stop_reason
    requests = [Parts.of(request.raw) for request in server.requests]
    assert len(requests) == TURNS * 2 + TURNS // 3
    dropped = 0
    for one, following in pairwise(requests):
        assert following.messages[: len(one.messages)] == one.messages
        stayed = [each for each in one.tools if each in following.tools]
        assert following.tools[: len(stayed)] == stayed
        if following.tools[: len(one.tools)] == one.tools:
            assert following.system.startswith(one.system)
        else:
            dropped += 1
    gone = [choice["gone"] for choice in went(conversation)]
    assert dropped == len(gone) < TURNS // 3
    assert {FOR_ROOM} in [set(each.values()) for each in gone]
    assert [each[GUEST.name] for each in gone if GUEST.name in each] == [NOT_OFFERED]
