"""A model server: what the APIs that it speaks have in common, from the request's bytes to a whole answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import replace
from typing import Protocol

from openai import AsyncStream, OpenAIError
from openai._streaming import ServerSentEvent

from agents.engine.errors import ProviderError
from agents.engine.interfaces.provider import Answer, TextDelta
from agents.engine.ledger import JSON
from agents.providers.common import failures
from agents.providers.common.client import Clients
from agents.providers.common.prices import Prices

TAIL_SECONDS = 2.0
"""How long to wait for what follows the end of an answer: its counts, and the end of the stream, so that the connection
can be used again."""


class Reader(Protocol):
    """Takes the events of one answer in an API's own form, then gives the answer."""

    @property
    def ended(self) -> bool:
        """Whether the answer is whole. What still comes may count its tokens, but cannot change or break it."""
        ...

    def feed(self, event: JSON) -> str:
        """Take one event; returns the text it adds. Raises ProviderError where it says that the model failed."""
        ...

    def answer(self) -> Answer:
        """The whole answer. Raises ProviderError where the stream ended too early or nothing was said."""
        ...


class ModelServer:
    """Where models are asked: an address and a key, the model of each tier, connections, prices.

    Without `base_url` it is OpenAI itself. `connect_seconds` and `read_seconds` (the longest silence in an answer) end
    an attempt as ProviderError `timeout`. All protocols of a site share one; whoever closes any of them closes it.
    """

    def __init__(
        self,
        api_key: str = "",
        base_url: str | None = None,
        *,
        models: Mapping[str, str],
        connect_seconds: float = 10,
        read_seconds: float = 120,
    ) -> None:
        self._models = models
        self._clients = Clients(api_key, base_url, connect_seconds=connect_seconds, read_seconds=read_seconds)
        self._prices = Prices(base_url)

    def model(self, tier: str) -> str:
        """The name of a tier's model."""
        return self._models[tier]

    @property
    def models(self) -> tuple[str, ...]:
        """The names of all models that may be asked for."""
        return tuple(self._models.values())

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        await self._clients.aclose()

    async def ask(self, path: str, model: str, body: bytes, reader: Reader) -> AsyncGenerator[TextDelta | Answer, None]:
        """Send the request; yields its answer's text as it comes, and the answer with its price last.

        Raises ProviderError; its codes stand in `agents.providers.common.failures`.
        """
        self._prices.prepare()
        try:
            async with await self._open(path, body) as stream:
                _check_is_stream(stream)
                while not reader.ended and (event := await _next(stream)) is not None:
                    if text := reader.feed(event):
                        yield TextDelta(text)
                await _tail(stream, reader)
            answer = reader.answer()
        except ProviderError as error:
            raise failures.without_key(error, self._clients.api_key) from None
        yield replace(answer, cost_nano_usd=await self._prices.cost(answer.usage, answer.model, model))

    async def _open(self, path: str, body: bytes) -> AsyncStream[object]:
        try:
            return await self._clients.get().post(
                path,
                content=body,
                cast_to=object,  # events stay plain dicts
                stream=True,
                stream_cls=_Events,
                options={"headers": {"Content-Type": "application/json"}},
            )
        except OpenAIError as error:
            raise failures.opening_failed(error) from None


class _Events(AsyncStream[object]):
    """The SDK's stream without the events that hold no data: they keep a connection alive, and are no JSON."""

    async def _iter_events(self) -> AsyncIterator[ServerSentEvent]:
        async for event in super()._iter_events():
            if event.data.strip():
                yield event


def _check_is_stream(stream: AsyncStream[object]) -> None:
    """Raise ProviderError for a web page, or for an answer that does not stream: the base URL leads elsewhere."""
    kind = stream.response.headers.get("content-type", "")
    if kind.startswith(("text/html", "application/json")):
        raise ProviderError(f"The model server sent {kind} instead of a stream of events.", code="refused")


async def _next(stream: AsyncStream[object]) -> object:
    """The next event; None at the end. Raises ProviderError where the stream breaks."""
    try:
        return await anext(stream, None)
    except (OpenAIError, ValueError, RecursionError) as error:  # the last two: data that is no UTF-8 or no JSON
        raise failures.reading_failed(error) from None


async def _tail(stream: AsyncStream[object], reader: Reader) -> None:
    """Read what follows a whole answer. Where that breaks, the answer stays whole."""
    with contextlib.suppress(ProviderError, TimeoutError):
        async with asyncio.timeout(TAIL_SECONDS):
            while (event := await _next(stream)) is not None:
                reader.feed(event)
