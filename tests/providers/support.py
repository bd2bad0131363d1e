"""The model APIs against the wire server: real HTTP over loopback, the real SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

import pytest

from agents.engine.errors import ProviderError
from agents.engine.interfaces.messages import Message, UserMessage
from agents.engine.interfaces.provider import Answer, Provider, Request, TextDelta, ToolDefinition
from agents.providers.chat.protocol import Chat
from agents.providers.common.server import ModelServer
from agents.providers.json.protocol import JsonProtocol
from agents.providers.responses.protocol import Responses
from tests.wire.script import Call, Reply
from tests.wire.server import WireServer

KEY = "sk-test-0123456789abcdef"
MODELS = {"normal": "small-model", "high": "o9-large"}

ECHO = ToolDefinition("echo", "Say it again.", {"type": "object", "properties": {"text": {"type": "string"}}})
HELLO = (UserMessage("Hello"),)

PROTOCOLS: dict[str, Callable[[ModelServer], Provider]] = {"responses": Responses, "chat": Chat, "json": JsonProtocol}
"""Every way in which a model is asked."""


def asks(protocol: str, text: str, *calls: Call) -> Reply:
    """An answer with calls as a model gives it that speaks this protocol; in JSON it may have one."""
    if protocol != "json" or not calls:
        return Reply(text, calls)
    (call,) = calls
    asked = json.dumps({"tool": call.name, "parameters": call.arguments, "terminate": False})
    return Reply(f"{text}\n\n```json\n{asked}\n```" if text else asked)


def request(
    provider: Provider,
    *rounds: Sequence[Message],
    tier: str = "normal",
    system: str = "You are a test.",
    tools: tuple[ToolDefinition, ...] = (ECHO,),
) -> Request:
    """A request whose history is `rounds`."""
    return Request(tier, system, tools, [provider.encode(messages) for messages in rounds])


async def collect(provider: Provider, asked: Request) -> tuple[list[str], Answer]:
    """Ask; the pieces of text, and the answer."""
    pieces: list[str] = []
    answers: list[Answer] = []
    async for event in provider.ask(asked):
        if isinstance(event, TextDelta):
            assert not answers
            pieces.append(event.text)
        else:
            answers.append(event)
    assert len(answers) == 1
    return pieces, answers[0]


async def ask(provider: Provider, *rounds: Sequence[Message]) -> Answer:
    """Ask with a history of `rounds`, or of one greeting; the answer."""
    return (await collect(provider, request(provider, *(rounds or (HELLO,)))))[1]


async def refusal(provider: Provider, asked: Request | None = None) -> ProviderError:
    """Ask for what must fail; the error, after no Answer was seen."""

    async def listen() -> None:
        async for event in provider.ask(asked or request(provider, HELLO)):
            assert not isinstance(event, Answer)

    with pytest.raises(ProviderError) as caught:
        await listen()
    return caught.value


async def until_asked(server: WireServer) -> None:
    """Wait for the server's first request."""
    while not server.requests:  # noqa: ASYNC110 - it comes in another thread
        await asyncio.sleep(0.001)
