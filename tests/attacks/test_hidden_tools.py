"""R8: nobody but staff is shown which tools there are. What a person's own turns called is theirs to see."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from django.test import Client

from agents import discovery
from agents.engine.tools.tool import wire_name
from agents.models import Skill
from conversations.models import Output
from tests.api.table import SOCKETS, rows
from tests.api.world import World, routes
from tests.budget import share
from tests.conversations.listening import aside, cookie, key_for, opened, streamed
from tests.workflows import shop

MEMBERS = ("anonymous", "owner", "key")
"""Those who are no staff, see `tests.api.world`."""
STREAM = "/events/"
WHOLE_PROMPT = "/enhanced"
"""The one address that shows the prompt itself, with what the caller's own agent is offered (R20)."""
REQUESTS: tuple[tuple[str, Callable[[World, str], dict[str, Any]]], ...] = (
    ("get", lambda world, route: {}),
    ("options", lambda world, route: {}),
    ("post", lambda world, route: NONSENSE),
    ("post", World.body),
)
NONSENSE: dict[str, Any] = {
    "data": json.dumps({"tool": "x", "policy": "no.such", "payload": {"tools": ["no.such"]}}),
    "content_type": "application/json",
}


def made() -> World:
    """The world, with a skill that has a tool."""
    world = World()
    Skill.objects.create(name="numbers", description="d", body="b", tools=["csv.summary"])

    return world


@pytest.fixture(autouse=True)
def _workflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with shop.registered(monkeypatch, shop.order):
        yield


def hidden_names() -> re.Pattern[str]:
    """The names of all tools that were never called, as they are declared and as models read them."""
    called = set(Output.objects.exclude(tool="").values_list("tool", flat=True))
    names = {tool.name for tool in discovery.installed().tools} - called
    assert "files.read" in names
    return re.compile("|".join(re.escape(each) for name in sorted(names) for each in (name, wire_name(name))))


def told(client: Client, method: str, address: str, **body: Any) -> str:
    """Everything that an answer says."""
    response = getattr(client, method)(address, **body)
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return f"{response.status_code} {dict(response.headers)} {content.decode(errors='replace')}"


@pytest.mark.django_db
@pytest.mark.parametrize("role", share(MEMBERS, of=3))
def test_no_address_names_a_tool_that_was_never_called(role: str) -> None:
    """Every address of the site: read, sent nonsense, and sent what it takes."""
    world, leaks, answers = made(), [], 0
    hidden = hidden_names()
    for method, body_of in REQUESTS:
        for route in routes():
            if route.endswith((STREAM, WHOLE_PROMPT)):
                continue
            cache.clear()  # which counts requests against a limit
            with transaction.atomic():
                found = told(world.client(role), method, world.address(route), **body_of(world, route))
                transaction.set_rollback(True)
            answers += found.startswith("200")
            leaks += [(method, route, name) for name in sorted(set(hidden.findall(found)))]
    assert leaks == []
    assert answers > (2 if role == "anonymous" else 20)  # not refusals alone


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("route", [*filter(None, (row.strip("()") for row in rows(SOCKETS)))])
async def test_no_socket_names_a_tool_that_was_never_called(route: str) -> None:
    world = await aside(made)
    hidden = await aside(hidden_names)
    session = await aside(cookie, world.owner)
    async with opened("/" + route.replace("<int:pk>", str(world.waiting.conversation.pk)), session) as (
        listener,
        first,
    ):
        said = [first] if first["type"] == "websocket.close" else [first, await listener.receive()]
    assert hidden.findall(str(said)) == []


@pytest.mark.django_db(transaction=True)
async def test_no_stream_names_a_tool_that_was_never_called() -> None:
    """All events of a turn that has ended; the stream of a conversation is made of the same."""
    world = await aside(made)
    hidden = await aside(hidden_names)
    key = await aside(key_for, world.owner)
    async with streamed(f"/api/prompts/{world.stopped.pk}/events/?after=0", key) as stream:
        said = [event async for event in stream.events()]
    assert len(said) > 2
    assert hidden.findall(str(said)) == []
