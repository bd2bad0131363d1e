"""A model server: what all its APIs have in common, from the bytes of a request to the complete answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol, cast
from weakref import WeakKeyDictionary

from httpx2 import AsyncByteStream, ReadTimeout, Response
from openai import AsyncOpenAI, AsyncStream, DefaultAioHttpClient, Timeout

from agents.engine.errors import ProviderError
from agents.engine.interfaces.provider import Answer, TextDelta
from agents.engine.ledger import JSON
from agents.providers.common import failures, prices
from agents.providers.common.address import is_loopback, is_openai
from agents.providers.common.sse import EventData

CONNECT_SECONDS = 10.0
"""The longest time to reach the server."""
TAIL_SECONDS = 2.0
"""Seconds to wait for what follows the end of an answer: its token counts, and the end of the stream, so that the
connection can be used again."""


class Reader(Protocol):
    """A reader of one answer: it is fed the events of the API and then returns the answer."""

    @property
    def ended(self) -> bool:
        """Whether the answer is complete. Later events may count its tokens, but cannot change or break it."""
        ...

    def feed(self, event: JSON) -> str:
        """Add one event. Returns the text that it adds. Raises ProviderError if it reports a failure of the model."""
        ...

    def answer(self) -> Answer:
        """Return the complete answer. Raises ProviderError if the stream ended too early or the answer is empty."""
        ...


class ModelServer:
    """A model server: its address and key, the name of each tier's model, and its connections.

    Without `base_url` it is OpenAI itself. `read_seconds`, the longest silence in an answer, ends an attempt with
    ProviderError `timeout`. `needs_user`: it insists on a user's message in every turn, and on roles that alternate.
    `takes_parts`: the result of a call may be a list of texts. By default only OpenAI's is: others may refuse it, and
    would then refuse every later turn of the conversation (github.com/ollama/ollama/pull/15406,
    github.com/CherryHQ/cherry-studio/issues/3307, github.com/Gitlawb/openclaude/issues/774).
    All protocols of a site share one server; closing any of them closes it.
    """

    def __init__(
        self,
        api_key: str = "",
        base_url: str | None = None,
        *,
        models: Mapping[str, str],
        read_seconds: float = 120,
        needs_user: bool = False,
        takes_parts: bool | None = None,
    ) -> None:
        self.models, self.needs_user = models, needs_user
        self.takes_parts = is_openai(base_url) if takes_parts is None else takes_parts
        self._api_key = api_key
        self._base_url = base_url
        self._timeout = Timeout(read_seconds, connect=CONNECT_SECONDS)
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncOpenAI] = WeakKeyDictionary()

    async def aclose(self) -> None:
        """Close the running loop's connections. Call it before the loop ends; a later `ask` opens new ones."""
        if client := self._clients.pop(asyncio.get_running_loop(), None):
            await client.close()

    async def ask(self, path: str, model: str, body: bytes, reader: Reader) -> AsyncGenerator[TextDelta | Answer, None]:
        """Send the request. Yields the answer's text as it arrives and, last, the answer with its price.

        Raises ProviderError, with one of the codes listed in `agents.providers.common.failures`.
        """
        try:
            async with await self._open(path, body) as stream, aclosing(_events(stream.response)) as events:
                async for event in events:
                    if text := reader.feed(event):
                        yield TextDelta(text)
                    if reader.ended:
                        break
                await _tail(events, reader)
            answer = reader.answer()
        except ProviderError as error:
            raise failures.without_key(error, self._api_key) from None
        yield replace(answer, cost_nano_usd=await prices.cost(self._base_url, answer.usage, answer.model, model))

    async def _open(self, path: str, body: bytes) -> AsyncStream[object]:
        try:
            return await self._client().post(
                path,
                content=body,
                cast_to=object,
                stream=True,
                stream_cls=AsyncStream[object],  # of which only the response is read
                options={"headers": {"Content-Type": "application/json"}},
            )
        except failures.SDK_ERRORS as error:
            raise failures.opening_failed(error) from None

    def _client(self) -> AsyncOpenAI:
        """Return the running loop's client: a connection belongs to the loop that opened it."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = AsyncOpenAI(
                api_key=self._api_key or "none",  # the SDK requires one; local servers do not
                base_url=self._base_url,
                max_retries=0,  # the caller counts and records the attempts
                timeout=self._timeout,
                # By aiohttp: the SDK's default client looks at each of its connections for every request, which costs
                # more than the request when 200 turns ask at once. HTTP_PROXY is for servers elsewhere: a proxy cannot
                # reach our own loopback.
                http_client=DefaultAioHttpClient(
                    trust_env=not is_loopback(self._base_url), event_hooks={"response": [_limit_silence]}
                ),
            )
        return self._clients[loop]


async def _limit_silence(response: Response) -> None:
    stream = cast(AsyncByteStream, response.stream)
    response.stream = _LimitedSilence(stream, response.request.extensions["timeout"]["read"])


class _LimitedSilence(AsyncByteStream):
    """The bytes of an answer, with the longest silence between two of them in seconds.

    aiohttp 3.14 has such a limit, but gives it up when it finds that what comes is no HTTP, and then waits for ever.
    """

    def __init__(self, stream: AsyncByteStream, seconds: float) -> None:
        self._stream, self._seconds = stream, seconds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._stream)
        while True:
            try:
                async with asyncio.timeout(self._seconds):
                    piece = await anext(pieces)
            except StopAsyncIteration:
                return
            except TimeoutError:
                raise ReadTimeout("nothing came for too long") from None
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _events(response: Response) -> AsyncGenerator[JSON, None]:
    """Yield the events of an answer until it says that it is done, and read what comes after that.

    Raises ProviderError if it breaks off, reports an error, or is no stream of events at all.
    """
    _check_is_stream(response)
    data = EventData()
    try:
        async with aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                for text in data.feed(piece):
                    if text.startswith("[DONE]"):
                        await _read_on(pieces)
                        return
                    yield _checked(json.loads(text))
    except (
        *failures.SDK_ERRORS,
        ValueError,
        RecursionError,
    ) as error:  # the last two: data that is not UTF-8 or not JSON
        raise failures.reading_failed(error) from None


def _check_is_stream(response: Response) -> None:
    """Raise ProviderError for a web page, or an answer that does not stream: the base URL is probably wrong."""
    kind = response.headers.get("content-type", "")
    if kind.startswith(("text/html", "application/json")):
        raise ProviderError(f"The model server sent {kind} instead of a stream of events.", code="unknown_address")


def _checked(event: JSON) -> JSON:
    """Return an event. Raises ProviderError if it is an error, which all APIs report in the same way."""
    if isinstance(event, dict) and (error := event.get("error")):
        raise failures.reported(error)
    return event


async def _read_on(pieces: AsyncIterator[bytes]) -> None:
    """Read to the end of an answer that is done."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(TAIL_SECONDS):
            async for _ in pieces:
                pass


async def _tail(events: AsyncIterator[JSON], reader: Reader) -> None:
    """Read what follows a complete answer. If that breaks, the answer is still complete."""
    with contextlib.suppress(ProviderError, TimeoutError):
        async with asyncio.timeout(TAIL_SECONDS):
            async for event in events:
                reader.feed(event)
