"""The wire server, as the SDK and other clients see it."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator

import httpx2
import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError

from agents.providers.demo.server import listen
from agents.providers.responses.protocol import Responses
from tests.providers.support import KEY, ask, until_asked
from tests.wire.script import Call, Reply
from tests.wire.server import WireServer

REPLY = Reply("A text in pieces.", (Call("echo", {"text": "x" * 30}, "c1"),), reasoning="A thought in pieces.")

EVENTS = (
    *("created", "in_progress"),
    *("output_item.added", "reasoning_summary_part.added"),
    *("reasoning_summary_text.delta", "reasoning_summary_text.delta", "reasoning_summary_text.done"),
    *("reasoning_summary_part.done", "output_item.done"),
    *("output_item.added", "content_part.added"),
    *("output_text.delta", "output_text.delta", "output_text.done"),
    *("content_part.done", "output_item.done"),
    "output_item.added",
    *("function_call_arguments.delta",) * 3,
    *("function_call_arguments.done", "output_item.done"),
    "completed",
)


@pytest.fixture
async def client(wire: WireServer) -> AsyncIterator[AsyncOpenAI]:
    """The SDK, refusing whatever does not fit its own types."""
    strict = AsyncOpenAI(api_key=KEY, base_url=wire.url, max_retries=0, _strict_response_validation=True)
    async with strict as client:
        yield client


async def test_the_events_are_those_of_the_real_api(wire: WireServer, client: AsyncOpenAI) -> None:
    """In their order and numbered; the SDK finds every field that its types have."""
    wire.script = [REPLY]
    async with await client.responses.create(model="m", input="Hello", stream=True) as stream:
        events = [event async for event in stream]
    assert [event.type for event in events] == [f"response.{name}" for name in EVENTS]
    assert [event.sequence_number for event in events] == list(range(len(events)))


async def test_the_sdks_own_assembler_accepts_the_stream(wire: WireServer, client: AsyncOpenAI) -> None:
    """The SDK's `stream()` puts the pieces together and insists on every event."""
    wire.script = [REPLY]
    async with client.responses.stream(model="m", input="Hello") as stream:
        whole = await stream.get_final_response()
    assert whole.output_text == REPLY.text
    assert [item.type for item in whole.output] == ["reasoning", "message", "function_call"]


async def test_an_answer_without_streaming(wire: WireServer, client: AsyncOpenAI) -> None:
    """The same answer as one piece of JSON."""
    wire.script = [REPLY]
    whole = await client.responses.create(model="m", input="Hello")
    assert (whole.output_text, whole.status, whole.model) == (REPLY.text, "completed", "m")
    assert whole.usage is not None
    assert whole.usage.total_tokens == whole.usage.input_tokens + whole.usage.output_tokens > 0


async def test_errors_have_the_apis_shape(client: AsyncOpenAI) -> None:
    """The SDK finds message, code and parameter."""
    with pytest.raises(BadRequestError) as refused:
        await client.responses.create(model="", input="Hello")
    assert (refused.value.code, refused.value.param) == ("empty_string", "model")


async def test_other_addresses_are_not_found(wire: WireServer) -> None:
    """404 in the API's shape, also for another method; what is no JSON is a 400."""
    async with httpx2.AsyncClient() as client:
        for method, path in (("GET", "/responses"), ("POST", "/chat"), ("DELETE", "/models")):
            answer = await client.request(method, wire.url + path)
            assert answer.status_code == 404
            assert path in answer.json()["error"]["message"]
        assert (await client.post(f"{wire.url}/responses", content=b"{")).status_code == 400


async def test_the_one_model_is_listed(client: AsyncOpenAI) -> None:
    """Programs offer what is listed; the answer to another name tells which there is."""
    assert [model.id async for model in client.models.list()] == ["demo"]
    described = await client.models.retrieve("demo")
    assert (described.id, described.object, described.owned_by) == ("demo", "model", "agentsite")
    with pytest.raises(NotFoundError, match="only 'demo'") as missing:
        await client.models.retrieve("some/other model")
    assert (missing.value.code, missing.value.param) == ("model_not_found", "model")


async def test_what_the_demo_model_cannot_do(client: AsyncOpenAI) -> None:
    """The message says what to do."""
    with pytest.raises(NotFoundError, match=r"no embeddings\. Set OPENAI_API_KEY or OPENAI_BASE_URL"):
        await client.embeddings.create(model="demo", input="Hello")
    with pytest.raises(NotFoundError, match=r"no completions without a chat\. Set OPENAI_API_KEY"):
        await client.completions.create(model="demo", prompt="Hello")


async def test_requests_are_recorded(wire: WireServer, provider: Responses) -> None:
    """Bytes, headers and time; without the key where other processes read them."""
    wire.script = [Reply("Yes.")]
    before = time.time()
    await ask(provider)
    asked = wire.requests[0]
    assert before <= asked.time <= time.time()
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    async with httpx2.AsyncClient() as client:
        shown = (await client.get(wire.url.removesuffix("/v1") + "/requests")).json()
    assert [each["body"] for each in shown] == [asked.body]
    assert KEY not in str(shown)


async def test_a_script_may_be_a_function(wire: WireServer, provider: Responses) -> None:
    """It sees the request's body; its own mistakes are told, and not to be retried."""
    wire.script = lambda body: Reply(f"{len(body['input'])} items")
    assert (await ask(provider)).text == "1 items"
    async with httpx2.AsyncClient() as client:
        wire.script = lambda body: Reply(body["nothing"])
        answer = await client.post(f"{wire.url}/responses", json={"model": "m", "input": "x"})
    assert answer.status_code == 400
    assert "KeyError('nothing')" in answer.json()["error"]["message"]


async def test_hundreds_of_streams_at_once(wire: WireServer, provider: Responses) -> None:
    """250 answers that each take a while take little more together."""
    wire.script = lambda _: Reply("Yes.", delay_seconds=0.2)
    begun = time.monotonic()
    answers = await asyncio.gather(*(ask(provider) for _ in range(250)))
    assert {answer.text for answer in answers} == {"Yes."}
    assert time.monotonic() - begun < 10


def test_answers_are_not_held_back() -> None:
    """asyncio sends at once only where the socket names its protocol; else each answer waits 40 ms for an ACK."""
    with listen() as sock:
        assert sock.proto == socket.IPPROTO_TCP


def test_stop_ends_open_streams() -> None:
    """A server in the middle of an answer stops at once, and is gone."""
    server = WireServer(lambda _: Reply("Late.", delay_seconds=60))

    async def leave() -> None:
        async with httpx2.AsyncClient() as client:
            asking = asyncio.create_task(client.post(f"{server.url}/responses", json={"model": "m", "input": "x"}))
            await until_asked(server)
            begun = time.monotonic()
            await asyncio.to_thread(server.stop)
            assert time.monotonic() - begun < 5
            await asyncio.wait([asking])
            assert asking.exception() or asking.result().status_code == 500
            with pytest.raises(httpx2.ConnectError):
                await client.get(f"{server.url}/models")

    asyncio.run(leave())
