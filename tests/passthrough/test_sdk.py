"""OpenAI's own SDK through `/v1`: the same calls straight to the model server give the same, to the last field."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from tests.passthrough import samples
from tests.passthrough.samples import TEXT
from tests.passthrough.site import UPSTREAM_KEY, Leg
from tests.passthrough.upstream import EVENTS, Answer, Upstream

ASK: list[Any] = [{"role": "user", "content": TEXT}]
WEATHER: list[Any] = [
    {
        "type": "function",
        "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
    }
]
Call = Callable[[OpenAI], Any]


class City(BaseModel):
    """What a model is to fill in."""

    name: str
    people: int


CITY = City(name="Zürich", people=450_000)


def stream(events: list[bytes]) -> Answer:
    return Answer(events, headers=[EVENTS, ("x-request-id", "req_1")])


def dumped(events: Any) -> list[Any]:
    return [event.model_dump() for event in events]


def parsed(client: OpenAI) -> Any:
    found = client.chat.completions.parse(model="m", messages=ASK, response_format=City)
    assert found.choices[0].message.parsed == CITY
    return found.model_dump(warnings=False)


def streamed_parse(client: OpenAI) -> Any:
    with client.chat.completions.stream(model="m", messages=ASK, response_format=City) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.parsed == CITY
    return final.model_dump(warnings=False)


def counted(client: OpenAI) -> Any:
    options: Any = {"include_usage": True}
    events = dumped(client.chat.completions.create(model="m", messages=ASK, stream=True, stream_options=options))
    assert events[-1]["usage"]["total_tokens"] == 18
    return events


def assembled(client: OpenAI) -> Any:
    with client.responses.stream(model="m", input=TEXT) as stream:
        final = stream.get_final_response()
    assert final.output_text == TEXT
    return final.model_dump(warnings=False)


def listed(client: OpenAI) -> Any:
    models = dumped(client.models.list())
    assert [model["id"] for model in models] == ["m", "org/m:free"]
    return models


CALLS: dict[str, tuple[Answer, Call]] = {
    "chat": (
        Answer(samples.completion()),
        lambda client: client.chat.completions.create(model="m", messages=ASK).model_dump(),
    ),
    "chat, streamed": (
        stream(samples.chunks()),
        lambda client: dumped(client.chat.completions.create(model="m", messages=ASK, stream=True)),
    ),
    "chat, streamed with usage": (stream(samples.chunks(usage=True)), counted),
    "tool calls": (
        Answer(samples.completion(None, [samples.CALL])),
        lambda client: client.chat.completions.create(model="m", messages=ASK, tools=WEATHER).model_dump(),
    ),
    "tool calls, streamed": (
        stream(samples.chunks(calls=[samples.CALL])),
        lambda client: dumped(client.chat.completions.create(model="m", messages=ASK, tools=WEATHER, stream=True)),
    ),
    "structured output": (Answer(samples.completion(CITY.model_dump_json())), parsed),
    "structured output, streamed": (stream(samples.chunks(CITY.model_dump_json())), streamed_parse),
    "responses": (
        Answer(samples.encoded(samples.response())),
        lambda client: client.responses.create(model="m", input=TEXT).model_dump(),
    ),
    "responses, streamed": (
        stream(samples.response_events()),
        lambda client: dumped(client.responses.create(model="m", input=TEXT, stream=True)),
    ),
    "responses, assembled": (stream(samples.response_events()), assembled),
    "completions": (
        Answer(samples.legacy()),
        lambda client: client.completions.create(model="m", prompt=TEXT).model_dump(),
    ),
    "embeddings": (
        Answer(samples.embeddings(as_base64=True)),
        lambda client: client.embeddings.create(model="m", input=TEXT).model_dump(),
    ),
    "embeddings, as numbers": (
        Answer(samples.embeddings(as_base64=False)),
        lambda client: client.embeddings.create(model="m", input=TEXT, encoding_format="float").model_dump(),
    ),
    "models": (Answer(samples.models("m", "org/m:free")), listed),
    "a model": (
        Answer(samples.encoded(json.loads(samples.models("org/m:free"))["data"][0])),
        lambda client: client.models.retrieve("org/m:free").model_dump(),
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_same_as_straight_to_the_server(upstream: Upstream, legs: tuple[Leg, Leg], name: str) -> None:
    """What the SDK makes of the answer, and what the server is sent: method, path, body, and all other headers."""
    answer, call = CALLS[name]
    upstream.answers(answer)
    made = []
    for leg in legs:
        with leg.sdk() as client:
            made.append(call(client))
    assert made[0] == made[1]
    straight, through = upstream.requests
    assert (straight.method, straight.target, straight.body) == (through.method, through.target, through.body)
    assert through.header("authorization") == f"Bearer {UPSTREAM_KEY}"
    assert legs[1].key.encode() not in through.head
    for each in ("content-type", "content-length", "accept", "user-agent", "x-stainless-package-version"):
        assert through.header(each) == straight.header(each)


async def chat_events(client: AsyncOpenAI) -> list[Any]:
    events = await client.chat.completions.create(model="m", messages=ASK, stream=True)
    return [event.model_dump() async for event in events]


async def response_events(client: AsyncOpenAI) -> list[Any]:
    events = await client.responses.create(model="m", input=TEXT, stream=True)
    return [event.model_dump() async for event in events]


@pytest.mark.parametrize(
    ("events", "call"), [(samples.chunks(), chat_events), (samples.response_events(), response_events)]
)
async def test_coroutines_stream_the_same(
    upstream: Upstream, legs: tuple[Leg, Leg], events: list[bytes], call: Callable[[AsyncOpenAI], Awaitable[Any]]
) -> None:
    upstream.answers(stream(events))
    made = []
    for leg in legs:
        async with leg.async_sdk() as client:
            made.append(await call(client))
    assert made[0] == made[1]
    assert len(made[0]) > 10


async def test_coroutines_get_the_same(upstream: Upstream, legs: tuple[Leg, Leg]) -> None:
    """A chat, a response, embeddings and the models, one after another on one connection."""
    made = []
    for leg in legs:
        upstream.answers(*(CALLS[name][0] for name in ("chat", "responses", "embeddings", "models")))
        async with leg.async_sdk() as client:
            chat = await client.chat.completions.create(model="m", messages=ASK)
            response = await client.responses.create(model="m", input=TEXT)
            vectors = await client.embeddings.create(model="m", input=TEXT)
            models = [model.id async for model in client.models.list()]
            made.append((chat.model_dump(), response.model_dump(), vectors.model_dump(), models))
    assert made[0] == made[1]
    assert made[0][0]["choices"][0]["message"]["content"] == made[0][1]["output"][0]["content"][0]["text"] == TEXT
    assert made[0][2]["data"][0]["embedding"] == pytest.approx(samples.FLOATS)


def test_raw_answers_are_the_same_bytes(upstream: Upstream, legs: tuple[Leg, Leg]) -> None:
    """With the SDK's own way to see them, and its request id, which the server gave."""
    upstream.answers(
        Answer(samples.completion(), headers=[("content-type", "application/json"), ("x-request-id", "req_7")])
    )
    for leg in legs:
        with leg.sdk() as client:
            raw = client.chat.completions.with_raw_response.create(model="m", messages=ASK)
        assert raw.http_response.content == samples.completion()
        assert raw.request_id == "req_7"
        assert raw.parse().model_extra == {"x_unknown": {"of": ["a", "later", "version"]}}
