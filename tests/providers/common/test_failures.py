"""Whatever goes wrong is a ProviderError that says whether to try again."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from agents.engine.errors import ProviderError
from agents.engine.ledger import JSON
from agents.providers.common.server import ModelServer
from agents.providers.responses.protocol import Responses
from tests.providers.support import ECHO, HELLO, KEY, MODELS, ask, refusal, request, until_asked
from tests.wire.script import Call, Refusal, Reply
from tests.wire.server import WireServer


@asynccontextmanager
async def listening(status: str, body: bytes) -> AsyncIterator[Responses]:
    """A provider whose server answers with this status line and body, byte for byte."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        await reader.readexactly(int(length[1]) if length else 0)
        writer.write(f"HTTP/1.1 {status}\r\nConnection: close\r\n\r\n".encode() + body)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        provider = Responses(
            ModelServer(KEY, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", models=MODELS)
        )
        yield provider
        await provider.aclose()


LONG = "A text long enough for more than one piece of it."
ARGUMENTS = {"text": "arguments long enough for more than one piece"}


@pytest.mark.parametrize(
    ("status", "code", "expected", "retryable"),
    [
        (429, "rate_limit_exceeded", "rate_limited", True),
        (429, "insufficient_quota", "insufficient_quota", False),
        (408, "", "timeout", True),
        (500, "server_error", "server_error", True),
        (502, "", "server_error", True),
        (503, "", "server_error", True),
        (400, "invalid_value", "refused", False),
        (402, "", "insufficient_quota", False),
        (401, "invalid_api_key", "key_refused", False),
        (403, "", "refused", False),
        (404, "model_not_found", "unknown_model", False),
        (403, "model_not_found", "unknown_model", False),
        (404, "", "unknown_address", False),
        (405, "", "unknown_address", False),
        (529, "", "server_error", True),
        (400, "context_length_exceeded", "context_overflow", False),
    ],
)
async def test_http_errors(
    wire: WireServer, provider: Responses, *, status: int, code: str, expected: str, retryable: bool
) -> None:
    """429 and 5xx pass, other 4xx last; the server's own words are kept."""
    wire.script = [Reply(refusal=Refusal(status, code, "Because of this."))]
    error = await refusal(provider)
    assert (error.code, error.retryable, error.wait_seconds) == (expected, retryable, None)
    assert error.message == f"HTTP {status}: Because of this."
    assert len(wire.requests) == 1  # the SDK tried no second time


@pytest.mark.parametrize(
    "message",
    [
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        "This model's maximum context length is 8192 tokens.",
        "the request exceeds the available context size, try increasing it",
        "litellm.ContextWindowExceededError: AnthropicException - prompt is too long: 205668 tokens > 200000 maximum",
        "AnthropicException - prompt is too long: 205668 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 174167 + 64000 > 200000",
        "The input token count (1048577) exceeds the maximum number of tokens allowed (1048576).",
        "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
        "Input is too long for requested model.",
        "Please reduce the length of the messages or completion.",
        "`inputs` must have less than 1024 tokens. Given: 1500",
    ],
)
async def test_overflow_is_known_by_its_words(wire: WireServer, provider: Responses, message: str) -> None:
    """Model servers and gateways each say it in their own way, some of them as a fault of their own."""
    wire.script = [
        *(Reply(refusal=Refusal(status, "", message)) for status in (400, 413, 500)),
        Reply(events=({"error": message},)),
        Reply(events=({"error": {"message": message, "code": 400}},)),
    ]
    for _ in range(5):
        error = await refusal(provider)
        assert (error.code, error.retryable) == ("context_overflow", False)
        assert message in error.message


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens is too large: 9000. This model supports at most 4096 completion tokens.",
        "Invalid 'tools[0].function.name': string too long.",
        "The context deadline was exceeded.",
    ],
)
async def test_what_only_sounds_like_an_overflow_is_none(wire: WireServer, provider: Responses, message: str) -> None:
    """The conversation would be called too long for ever."""
    wire.script = [Reply(refusal=Refusal(400, "", message))]
    assert (await refusal(provider)).code == "refused"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": "model 'x' not found, try pulling it first"}, "model 'x' not found, try pulling it first"),
        ({"detail": "Not authenticated"}, "Not authenticated"),
        ({"detail": {"message": "No such model."}}, "No such model."),
        ({"detail": [{"loc": ["body", "model"], "msg": "Field required"}]}, "['body', 'model']: Field required"),
        ({"object": "error", "message": "Oh."}, "Oh."),
        ("Just a text.", "Just a text."),
        ("<html>Oh.</html>", ""),
        ([], ""),
        ({"error": None, "detail": 7}, ""),
    ],
)
async def test_the_words_of_any_error_are_kept(body: JSON, message: str) -> None:
    """Servers put them in different places; a web page says nothing that one could read."""
    answered = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    async with listening("404 Not Found", answered) as provider:
        error = await refusal(provider)
    assert error.message == (f"HTTP 404: {message}" if message else "HTTP 404")


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        # No such model, as Ollama says it, then vLLM (old and new), LiteLLM and OpenRouter.
        (404, {"error": {"message": 'model "x" not found, try pulling it first', "code": None}}, "unknown_model"),
        (404, {"object": "error", "message": "The model `x` does not exist.", "code": 404}, "unknown_model"),
        (404, {"error": {"message": "The model `x` does not exist.", "code": 404}}, "unknown_model"),
        (400, {"error": {"message": "Invalid model name passed in model=x.", "code": "400"}}, "unknown_model"),
        (401, {"error": {"message": "key not allowed", "code": "key_model_access_denied"}}, "unknown_model"),
        (400, {"error": {"message": "x is not a valid model ID", "code": 400}}, "unknown_model"),
        (404, {"error": {"message": "404 page not found", "code": 404}}, "unknown_address"),
        (404, {"detail": "Not Found"}, "unknown_address"),
        # Used up, as LiteLLM says it, then OpenRouter and DeepSeek.
        (429, {"error": {"message": "User over budget", "type": "budget_exceeded"}}, "insufficient_quota"),
        (400, {"error": {"message": "Budget has been exceeded! Max budget: 100"}}, "insufficient_quota"),
        (402, {"error": {"message": "Insufficient credits.", "code": 402}}, "insufficient_quota"),
        (402, {"error": {"message": "Insufficient Balance"}}, "insufficient_quota"),
        # What only sounds like one of these.
        (429, {"error": {"message": "You exceeded your current quota. Please retry in 12 s."}}, "rate_limited"),
        (500, {"error": {"message": "The model runner was not found."}}, "server_error"),
        (401, {"error": "Unauthorized"}, "key_refused"),
        # The key is wrong, as Gemini and xAI say it; and what else a 403 or a 400 may be about.
        (400, {"error": {"message": "API key not valid. Please pass a valid API key."}}, "key_refused"),
        (400, {"error": "Incorrect API key provided: xa***xx."}, "key_refused"),
        (403, {"error": {"message": "You do not have access to this project."}}, "key_refused"),
        (403, {"error": {"message": "Your input was flagged."}}, "refused"),
        (403, {"error": {"message": "Country, region, or territory not supported."}}, "refused"),
        (400, {"error": {"message": "model=azure/x: No call. tool_call_id 'call_1' not found"}}, "refused"),
        (400, {"error": {"message": "The model cannot read the image: file not found."}}, "refused"),
        (404, {"error": {"message": "models/gemini-x is not found for API version v1beta."}}, "unknown_model"),
        (422, {"detail": [{"loc": ["body", "tools"], "msg": "Field required"}]}, "refused"),
    ],
)
async def test_each_kind_of_refusal_is_told_apart(status: int, body: JSON, code: str) -> None:
    """The shapes and words of the servers that people run and rent."""
    async with listening(f"{status} Refused", json.dumps(body).encode()) as provider:
        assert (await refusal(provider)).code == code


@pytest.mark.parametrize(
    ("reported", "code"),
    [
        ({"code": "insufficient_quota", "message": "Pay."}, "insufficient_quota"),
        ({"code": 402, "message": "Insufficient credits."}, "insufficient_quota"),
        ({"code": "invalid_api_key", "message": "No."}, "key_refused"),
        ({"code": 401, "message": "No."}, "key_refused"),
        ({"code": "model_not_found", "message": "No such one."}, "unknown_model"),
        ({"code": "invalid_prompt", "message": "No."}, "refused"),
    ],
)
async def test_so_it_is_in_the_middle_of_an_answer(
    wire: WireServer, provider: Responses, reported: JSON, code: str
) -> None:
    """Some servers begin a stream before they look at the request."""
    wire.script = [Reply(events=({"error": reported},))]
    error = await refusal(provider)
    assert (error.code, error.retryable) == (code, False)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "2"}, 2),
        ({"Retry-After": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "Retry-After": "2"}, 1.5),
        ({"Retry-After": "-3"}, 0),
        ({"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}, 0),
        ({"Retry-After": "soon"}, None),
    ],
)
async def test_retry_after(
    wire: WireServer, provider: Responses, headers: dict[str, str], seconds: float | None
) -> None:
    """The server's own waiting time is passed on."""
    wire.script = [Reply(refusal=Refusal(429, headers=headers))]
    assert (await refusal(provider)).wait_seconds == seconds


async def test_retry_after_as_a_date(wire: WireServer, provider: Responses) -> None:
    """Retry-After may be a date."""
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    wire.script = [Reply(refusal=Refusal(503, headers={"Retry-After": date}))]
    wait = (await refusal(provider)).wait_seconds
    assert wait is not None
    assert 50 < wait <= 60


@pytest.mark.parametrize("how", ["cut", "end"])
@pytest.mark.parametrize(
    "after",
    [
        0,
        1,
        "response.output_text.delta",
        "response.output_text.done",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
    ],
)
async def test_a_broken_stream_is_no_answer(wire: WireServer, provider: Responses, after: int | str, how: JSON) -> None:
    """Wherever the stream breaks, in text, in a call's JSON or after it, nothing of it counts."""
    wire.script = [Reply(LONG, (Call("echo", ARGUMENTS),), break_after=after, break_how=how)]
    error = await refusal(provider)
    assert (error.code, error.retryable) == ("stream_broken", True)


async def test_a_break_after_the_last_event_does_not_matter(wire: WireServer, provider: Responses) -> None:
    """Once the answer is whole, the connection may do what it likes."""
    wire.script = [Reply(LONG, break_after="response.completed"), Reply(LONG)]
    assert (await ask(provider)).text == LONG
    assert (await ask(provider)).text == LONG


@pytest.mark.parametrize(
    ("event", "expected", "retryable"),
    [
        ({"type": "error", "code": "server_error", "message": "Oh."}, "server_error", True),
        ({"type": "error", "code": None, "message": "Oh."}, "server_error", True),
        ({"type": "error", "error": {"code": "rate_limit_exceeded", "message": "Oh."}}, "rate_limited", True),
        ({"type": "error", "error": {"code": "invalid_prompt", "message": "Oh."}}, "refused", False),
        ({"error": {"message": "Oh."}}, "server_error", True),
        ({"error": {"message": "Oh.", "code": "500", "type": "internal_server_error"}}, "server_error", True),
        ({"error": {"message": "Oh.", "code": 429}}, "rate_limited", True),
        ({"error": {"message": "Oh.", "code": 400}}, "refused", False),
        (
            {"type": "response.failed", "response": {"error": {"code": "server_error", "message": "Oh."}}},
            "server_error",
            True,
        ),
        (
            {"type": "response.failed", "response": {"error": {"code": "invalid_prompt", "message": "Oh."}}},
            "refused",
            False,
        ),
        (
            {"type": "response.failed", "response": {"error": {"code": "context_length_exceeded", "message": "Oh."}}},
            "context_overflow",
            False,
        ),
        ({"type": "response.failed", "response": None}, "server_error", True),
    ],
)
async def test_errors_inside_the_stream(
    wire: WireServer, provider: Responses, event: dict[str, Any], expected: str, retryable: bool
) -> None:
    """A model that fails after it began to answer."""
    wire.script = [Reply(events=({"type": "response.created", "response": {}}, event))]
    error = await refusal(provider)
    assert (error.code, error.retryable) == (expected, retryable)
    assert error.message in {"Oh.", "The model failed."}


async def test_an_empty_answer_is_none(wire: WireServer, provider: Responses) -> None:
    """Neither text nor calls: asked again."""
    wire.script = [Reply(), Reply(" \n"), Reply(reasoning="Hm.")]
    for _ in range(3):
        error = await refusal(provider)
        assert (error.code, error.retryable) == ("empty_answer", True)


async def test_an_answer_cut_before_its_first_word_is_none(wire: WireServer, provider: Responses) -> None:
    """All of the limit went into reasoning: the same request would end the same way."""
    wire.script = [Reply("x", incomplete="max_output_tokens")]
    error = await refusal(provider)
    assert (error.code, error.retryable) == ("incomplete", False)
    assert "max_output_tokens" in error.message


async def test_silence_before_the_answer_times_out(wire: WireServer) -> None:
    """The read timeout counts from the request."""
    wire.script = [Reply("Late.", delay_seconds=1)]
    provider = Responses(ModelServer(KEY, wire.url, models=MODELS, read_seconds=0.05))
    error = await refusal(provider, request(provider, HELLO))
    assert (error.code, error.retryable) == ("timeout", True)
    await provider.aclose()


async def test_silence_inside_the_answer_times_out(wire: WireServer) -> None:
    """The read timeout counts between two pieces too."""
    wire.script = [Reply(LONG, pause_seconds=1)]
    provider = Responses(ModelServer(KEY, wire.url, models=MODELS, read_seconds=0.05))
    error = await refusal(provider, request(provider, HELLO))
    assert (error.code, error.retryable) == ("timeout", True)
    await provider.aclose()


async def test_nobody_listens() -> None:
    """A refused connection says so, and may be tried again."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, so nobody else gets the port; not listening
        provider = Responses(ModelServer(KEY, f"http://127.0.0.1:{taken.getsockname()[1]}/v1", models=MODELS))
        error = await refusal(provider)
        assert (error.code, error.retryable) == ("unreachable", True)
        assert "cannot be reached" in error.message
        await provider.aclose()


@asynccontextmanager
async def raw_server(*sent: bytes, heard: asyncio.Event | None = None) -> AsyncIterator[Responses]:
    """A provider whose server sends these bytes, whatever they are; the second only after `heard`, and closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for number, piece in enumerate(sent):
            if number and heard:
                await heard.wait()
            writer.write(piece)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    provider = Responses(ModelServer(KEY, address, models=MODELS, read_seconds=1))
    yield provider
    await provider.aclose()
    server.close()


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
DELTA = b'data: {"type": "response.output_text.delta", "delta": "H"}\n\n'
FIRST = b"%x\r\n%s\r\n" % (len(DELTA), DELTA)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x01\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: \x00\r\n\r\n",
        b"HTTP/1.1 500 Oh\r\nContent-Length: 100\r\n\r\n{",
        CHUNKED + b"ZZZ\r\n",
    ],
)
async def test_what_is_no_http_may_be_tried_again(sent: bytes) -> None:
    async with raw_server(sent) as provider:
        error = await refusal(provider)
    assert (error.code, error.retryable) == ("unreachable", True)


async def test_what_is_no_http_in_the_middle_of_an_answer_ends_it() -> None:
    """The client would wait for ever for what comes next."""
    heard = asyncio.Event()

    async def listen(provider: Responses) -> None:
        async for _ in provider.ask(request(provider, HELLO)):
            heard.set()

    async with raw_server(CHUNKED + FIRST, b"ZZZ\r\n", heard=heard) as provider, asyncio.timeout(20):
        with pytest.raises(ProviderError) as caught:
            await listen(provider)
    assert (caught.value.code, caught.value.retryable) == ("timeout", True)


@pytest.mark.parametrize("kind", ["text/html; charset=utf-8", "application/json"])
async def test_what_is_no_stream_is_refused(wire: WireServer, provider: Responses, kind: str) -> None:
    """A base URL that leads to a web page, or a server that does not stream: to try again would not help."""
    wire.script = [Reply(refusal=Refusal(200, headers={"content-type": kind}))]
    error = await refusal(provider)
    assert (error.code, error.retryable) == ("unknown_address", False)
    assert kind in error.message


async def test_a_wrong_address_is_refused(wire: WireServer) -> None:
    """A base URL that leads nowhere."""
    provider = Responses(ModelServer(KEY, wire.url.removesuffix("/v1"), models=MODELS))
    error = await refusal(provider)
    assert (error.code, error.retryable) == ("unknown_address", False)
    assert "404" in error.message
    await provider.aclose()


@pytest.mark.parametrize(
    "reply",
    [
        Reply(refusal=Refusal(401, "invalid_api_key", f"Incorrect API key provided: {KEY}.")),
        Reply(refusal=Refusal(500, "", f"Header: Bearer {KEY}")),
        Reply(events=({"type": "error", "code": "x", "message": f"Key {KEY}"},)),
    ],
)
async def test_the_key_is_in_no_error(wire: WireServer, provider: Responses, reply: Reply) -> None:
    """Not even where the server repeats it; nor in the traceback that a log would print."""
    wire.script = [reply]
    error = await refusal(provider)
    told = f"{error} {error.message} {error!r} {''.join(traceback.format_exception(error))}"
    assert KEY not in told
    assert "[key]" in error.message


@pytest.mark.parametrize("key", ["k", "ollama", "EMPTY"])
async def test_a_key_that_is_no_secret_garbles_no_error(wire: WireServer, key: str) -> None:
    """Servers that want none are given any; it is a part of many a word."""
    wire.script = [Reply(refusal=Refusal(400, "", "No tokens. ollama is EMPTY."))]
    provider = Responses(ModelServer(key, wire.url, models=MODELS))
    assert (await refusal(provider)).message == "HTTP 400: No tokens. ollama is EMPTY."
    await provider.aclose()


async def test_leaving_an_answer_closes_its_connection(wire: WireServer, provider: Responses) -> None:
    """A cancelled turn does not go on paying for words."""
    wire.script = [Reply(LONG, pause_seconds=0.005), Reply(LONG)]
    task = asyncio.create_task(ask(provider))
    await until_asked(wire)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await ask(provider)).text == LONG


async def test_a_dead_proxy_does_not_hide_loopback(wire: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """HTTP_PROXY is for the world outside: a model on this machine is reached without it."""
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    wire.script = [Reply("Yes.")]
    provider = Responses(ModelServer(KEY, wire.url, models=MODELS))
    assert (await ask(provider)).text == "Yes."
    await provider.aclose()


async def test_the_servers_refusal_of_a_history_is_told(wire: WireServer, provider: Responses) -> None:
    """A history that the API refuses fails with the API's words."""
    wire.script = [Reply("Never.")]
    broken = request(provider, HELLO, tools=(ECHO, ECHO))
    error = await refusal(provider, broken)
    assert (error.code, error.retryable) == ("refused", False)
    assert "unique" in error.message
