"""The Responses API, through the `openai` SDK: OpenAI itself, and servers that speak its protocol.

Requests are stateless. Their history goes out as the bytes that `encode` made of it once, round by round; the SDK's
typed methods would walk the whole of it for every request.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator, Mapping, Sequence

from openai import AsyncStream, OpenAIError

from agents.engine.errors import ProviderError
from agents.engine.ledger import JSON
from agents.engine.messages import Message
from agents.engine.provider import Answer, Request, TextDelta, ToolDefinition
from agents.providers import failures, responses_items
from agents.providers.client import Clients
from agents.providers.responses_stream import Reader

REASONING_MODELS = re.compile(r"(.*/)?(o\d|gpt-[5-9]|codex)(?!.*-chat)")
"""Models that give encrypted reasoning to be sent back. Others refuse to be asked for it: "Encrypted content is not
supported with this model" (github.com/OpenHands/software-agent-sdk/pull/1208)."""

TAIL_SECONDS = 1.0
"""How long to wait for the end of the stream after its last event, so that the connection can be used again."""

_NOBODY_SPOKE = {"role": "developer", "content": [{"type": "input_text", "text": "Nobody has said anything yet."}]}
"""The API refuses an empty input; a turn that the system began may have none."""


class Responses:
    """The provider. `models` names the model of each tier. Without `base_url` it is OpenAI itself.

    `connect_seconds` and `read_seconds` (the longest silence in an answer) end an attempt as ProviderError `timeout`.
    Close it with `aclose()` in the loop that used it. Whoever leaves an `ask` before its end closes that too.
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

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        await self._clients.aclose()

    def encode(self, messages: Sequence[Message]) -> bytes:
        """See Provider.encode()."""
        return responses_items.encode(messages)

    async def ask(self, request: Request) -> AsyncGenerator[TextDelta | Answer, None]:
        """See Provider.ask(). The codes of its errors stand in `agents.providers.failures`."""
        reader = Reader()
        try:
            async with await self._open(_body(self._models[request.tier], request)) as stream:
                _check_is_stream(stream)
                while not reader.ended and (event := await _next(stream)) is not None:
                    if text := reader.feed(event):
                        yield TextDelta(text)
                await _drain(stream)
            yield reader.answer()
        except ProviderError as error:
            raise failures.without_key(error, self._clients.api_key) from None

    async def _open(self, body: bytes) -> AsyncStream[object]:
        try:
            return await self._clients.get().post(
                "/responses",
                content=body,
                cast_to=object,  # events stay plain dicts
                stream=True,
                stream_cls=AsyncStream[object],
                options={"headers": {"Content-Type": "application/json"}},
            )
        except OpenAIError as error:
            raise failures.opening_failed(error) from None


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


async def _drain(stream: AsyncStream[object]) -> None:
    """Read what follows the last event. The answer is whole: nothing that happens here matters."""
    with contextlib.suppress(ProviderError, TimeoutError):
        async with asyncio.timeout(TAIL_SECONDS):
            while await _next(stream) is not None:
                pass


def _body(model: str, request: Request) -> bytes:
    """The request, what never changes first: providers cache by prefix. The history is joined, never parsed."""
    head: dict[str, JSON] = {"model": model}
    if request.system:
        head["instructions"] = request.system
    if request.tools:  # an empty list is refused
        head |= {"tools": [_tool(tool) for tool in request.tools], "parallel_tool_calls": True}
    head |= {"store": False, "stream": True}
    if REASONING_MODELS.match(model):
        head["include"] = ["reasoning.encrypted_content"]
    history = b",".join(filter(None, request.history)) or responses_items.dumps(_NOBODY_SPOKE)
    return b"".join([responses_items.dumps(head)[:-1], b',"input":[', history, b"]}"])


def _tool(tool: ToolDefinition) -> dict[str, JSON]:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
        "strict": False,  # true, the API's default, refuses every schema that has an optional property
    }
