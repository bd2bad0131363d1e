"""What goes out to a model."""

from __future__ import annotations

import asyncio
import json

import pytest

from agents.engine.interfaces.messages import AssistantMessage, CallRequest, ResultMessage, UserMessage
from agents.engine.interfaces.provider import Request
from agents.providers.common.server import ModelServer
from agents.providers.responses.protocol import REASONING_MODELS, Responses
from tests.providers.support import ECHO, HELLO, KEY, MODELS, ask, collect, request
from tests.wire.script import Reply
from tests.wire.server import WireServer

ROUND = (
    AssistantMessage("I look.", (CallRequest("c1", "echo", {"b": 1, "a": "ä"}),)),
    ResultMessage("c1", "echo", "ä\n"),
)


async def test_the_history_goes_out_unchanged(wire: WireServer, provider: Responses) -> None:
    """The bytes of each round, as they were given, at the end of the body: nothing is parsed or written again."""
    wire.script = [Reply("Yes.")]
    odd = b'{"role" :"user",  "content": "\\u00e4 1e400"}'
    rounds = [odd, provider.encode(ROUND)]
    await collect(provider, Request("normal", "S", (), rounds))
    assert wire.requests[0].raw.endswith(b'"input":[' + odd + b"," + rounds[1] + b"]}")


async def test_the_whole_request(wire: WireServer, provider: Responses) -> None:
    """Stateless, streaming, system and tools as the API wants them (S20)."""
    wire.script = [Reply("Yes.")]
    await ask(provider, HELLO, ROUND)
    assert wire.requests[0].body == {
        "model": "small-model",
        "instructions": "You are a test.",
        "tools": [
            {
                "type": "function",
                "name": "echo",
                "description": "Say it again.",
                "parameters": ECHO.schema,
                "strict": False,
            }
        ],
        "store": False,
        "stream": True,
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "c1", "name": "echo", "arguments": '{"a":"ä","b":1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "ä\n"},
        ],
    }
    headers = wire.requests[0].headers
    assert headers["content-type"] == "application/json"
    assert headers["authorization"] == f"Bearer {KEY}"


async def test_a_later_request_begins_with_the_earlier_one(wire: WireServer, provider: Responses) -> None:
    """Providers cache by prefix: all but the closing brackets stands at the front of the next request."""
    wire.script = [Reply("Yes.")] * 2
    await ask(provider, HELLO)
    await ask(provider, HELLO, ROUND)
    first, second = (asked.raw for asked in wire.requests)
    assert second.startswith(first[:-2])


async def test_without_tools_nothing_is_said_of_tools(wire: WireServer, provider: Responses) -> None:
    """An empty list of tools is refused, so there is none."""
    wire.script = [Reply("Yes.")]
    await collect(provider, request(provider, HELLO, tools=(), system=""))
    body = wire.requests[0].body
    assert body.keys() == {"model", "store", "stream", "input"}


async def test_the_tier_names_the_model(wire: WireServer, provider: Responses) -> None:
    """Each tier has a model of its own (S1)."""
    wire.script = [Reply("Yes.")]
    _, answer = await collect(provider, request(provider, HELLO, tier="high"))
    assert wire.requests[0].body["model"] == answer.model == MODELS["high"]


def test_a_provider_may_be_used_in_one_loop_after_another(wire: WireServer) -> None:
    """Each event loop has connections of its own; closed ones are opened anew."""
    wire.script = [Reply("Yes.")] * 4
    provider = Responses(ModelServer(KEY, wire.url, models=MODELS))

    async def twice() -> None:
        await ask(provider)
        await provider.aclose()
        await ask(provider)
        await provider.aclose()

    asyncio.run(twice())
    asyncio.run(twice())
    assert len(wire.requests) == 4


async def test_connections_are_used_again(wire: WireServer, provider: Responses) -> None:
    """The end of a stream is read, so that the next request needs no new connection."""
    wire.script = [Reply("Yes.")] * 5
    ports = set()
    for _ in range(5):
        await ask(provider)
        ports.add(wire.requests[-1].client_port)
    assert len(ports) == 1


@pytest.mark.parametrize(
    ("model", "reasons"),
    [
        ("gpt-5", True),
        ("gpt-5.2-mini", True),
        ("o4-mini", True),
        ("openai/o3", True),
        ("codex-mini-latest", True),
        ("gpt-5-chat-latest", False),
        ("gpt-4o", False),
        ("gpt-4.1", False),
        ("gpt-oss-20b", False),
        ("olmo-3", False),
        ("demo", False),
    ],
)
def test_which_models_reason(model: str, reasons: bool) -> None:
    """Only those are asked for their reasoning."""
    assert bool(REASONING_MODELS.match(model)) is reasons


def test_encode_of_nothing_is_nothing() -> None:
    """No messages, no bytes."""
    assert Responses(ModelServer(models=MODELS)).encode([]) == b""


def test_equal_messages_give_equal_bytes() -> None:
    """Also where the order of the arguments' keys was lost in between, as it is when they are stored."""
    provider = Responses(ModelServer(models=MODELS))
    one, other = (
        provider.encode([AssistantMessage("", (CallRequest("c", "n", arguments),))])
        for arguments in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    )
    assert one == other


def test_half_a_surrogate_pair_is_replaced() -> None:
    """A model can say one, no API takes it."""
    item = json.loads(Responses(ModelServer(models=MODELS)).encode([UserMessage("a\ud83db")]))
    assert item["content"][0]["text"] == "a?b"
