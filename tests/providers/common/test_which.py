"""Which protocol and which models the settings choose."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from pytest_django.fixtures import Settings

from agents import registry
from agents.engine.interfaces.messages import AssistantMessage, CallRequest, ResultMessage, UserMessage
from agents.engine.interfaces.provider import Request
from agents.providers.chat.protocol import Chat
from agents.providers.common.server import ModelServer
from agents.providers.json.protocol import JsonProtocol
from agents.providers.responses.protocol import Responses
from tests.providers.support import KEY, MODELS, collect
from tests.wire.script import Reply
from tests.wire.server import WireServer


@pytest.fixture(autouse=True)
def afresh() -> Iterator[None]:
    """The settings are read when the providers are first asked for."""
    registry.protocols.cache_clear()
    yield
    registry.protocols.cache_clear()


@pytest.mark.parametrize(
    ("api", "default", "native"),
    [("responses", Responses, Responses), ("chat", Chat, Chat), ("json", JsonProtocol, Chat)],
)
def test_the_protocol(settings: Settings, api: str, default: type, native: type) -> None:
    """The site's own, and both that an agent may name (R1)."""
    settings.AGENTSITE_MODEL_API = api
    assert type(registry.provider()) is default
    assert {name: type(each) for name, each in registry.protocols().items()} == {"native": native, "json": JsonProtocol}
    assert registry.provider() in registry.protocols().values(), "one server, and one to close"


@pytest.mark.parametrize("needs_user", [False, True])
def test_a_server_that_insists_on_a_users_message(settings: Settings, needs_user: bool) -> None:
    """Whichever protocol an agent names."""
    settings.AGENTSITE_MODEL_NEEDS_USER = needs_user
    assert {each.needs_user for each in registry.protocols().values()} == {needs_user}


@pytest.mark.parametrize(("fallback", "tiers"), [("", ("normal", "high")), ("third", ("normal", "high", "fallback"))])
async def test_the_tiers(settings: Settings, wire: WireServer, fallback: str, tiers: tuple[str, ...]) -> None:
    """Each names a model; the one that stands in is there where it is set."""
    settings.AGENTSITE_MODEL_NORMAL, settings.AGENTSITE_MODEL_HIGH = "first", "second"
    settings.AGENTSITE_MODEL_FALLBACK, settings.OPENAI_BASE_URL = fallback, wire.url
    wire.script = [Reply("Yes.")] * len(tiers)
    provider = registry.provider()
    said = provider.encode([UserMessage("Hello?")])
    try:
        for tier in tiers:
            await collect(provider, Request(tier, "", (), (said,)))
    finally:
        await provider.aclose()
    assert [asked.body["model"] for asked in wire.requests] == ["first", "second", "third"][: len(tiers)]


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("", True),
        ("https://api.openai.com/v1", True),
        ("https://eu.api.openai.com/v1", True),
        ("https://mine.openai.azure.com/openai/v1", True),
        ("http://127.0.0.1:11434/v1", False),
        ("https://openai.com.example/v1", False),
        ("https://notopenai.com/v1", False),
    ],
)
@pytest.mark.parametrize("protocol", [Chat, Responses])
def test_only_openai_is_sent_a_result_in_parts(protocol: type[Chat | Responses], address: str, *, parts: bool) -> None:
    """Other servers may refuse it: then each later turn of the conversation would fail as well."""
    provider = protocol(ModelServer(KEY, address or None, models=MODELS))
    asked = AssistantMessage("", (CallRequest("c", "report", {}),))
    made = ResultMessage("c", "report", "done", notes=("[file a.txt] A summary",))
    result = json.loads(b"[" + provider.encode([asked, made]) + b"]")[-1]
    said = result.get("output", result.get("content"))
    assert isinstance(said, list if parts else str)
    assert "A summary" in json.dumps(said)
