"""The Responses provider, built on the `openai` SDK: for OpenAI itself and compatible servers.

Requests are stateless. Their history is sent as the bytes that `encode` made of it once, round by round; the SDK's
typed methods would process all of it for every request.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from agents.engine.errors import ProviderError
from agents.engine.interfaces.messages import Message
from agents.engine.interfaces.provider import Answer, Request, TextDelta, ToolDefinition
from agents.providers.common.server import ModelServer
from agents.providers.common.values import as_list, as_members, dumps, once_each
from agents.providers.responses import items
from agents.providers.responses.stream import ResponsesReader

REASONING_MODELS = re.compile(r"(.*/)?(o\d|gpt-[5-9]|codex)(?!.*-chat)")
"""Models that return encrypted reasoning, to be sent back, and summaries of it. Others refuse a request for it:
"Encrypted content is not supported with this model" (github.com/OpenHands/software-agent-sdk/pull/1208)."""

NO_SUMMARIES = re.compile(r"reasoning summar|reasoning\.summary", re.IGNORECASE)
"""How a server refuses summaries: "Your organization must be verified to generate reasoning summaries."
(github.com/OpenHands/software-agent-sdk/issues/987)."""


class Responses:
    """The provider for the Responses API. Close it with `aclose()` in the loop that used it.

    A caller that leaves an `ask` early must close that generator. If the server refuses to summarize its reasoning, the
    attempt fails with a retryable error, and later requests do not ask for summaries.
    """

    def __init__(self, server: ModelServer) -> None:
        self._server = server
        self._summaries = True

    @property
    def needs_user(self) -> bool:
        """Whether the server insists on a user's message in every turn."""
        return self._server.needs_user

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        await self._server.aclose()

    @property
    def encoding(self) -> str:
        """The name of the way in which messages are encoded, with all that it depends on."""
        return f"{type(self).__name__} {self._server.needs_user} {self._server.takes_parts}"

    def encode(self, messages: Sequence[Message]) -> bytes:
        """Return the messages as bytes, for the history of a request."""
        return items.encode(messages, parts=self._server.takes_parts)

    async def ask(self, request: Request) -> AsyncGenerator[TextDelta | Answer, None]:
        """Ask the model. Yields the text as it arrives, and the answer last."""
        model, summaries = self._server.models[request.tier], self._summaries
        body = _body(model, request, summaries)
        try:
            async with aclosing(self._server.ask("/responses", model, body, ResponsesReader())) as events:
                async for event in events:
                    yield event
        except ProviderError as error:
            if not (summaries and error.code == "refused" and NO_SUMMARIES.search(error.message)):
                raise
            self._summaries = False
            raise ProviderError(error.message, code=error.code, retryable=True, wait_seconds=0) from None


def _body(model: str, request: Request, summaries: bool) -> bytes:
    """Return the body, constant parts first: providers cache by prefix. The history is joined, never parsed.

    The site's line comes last, because it is not in later requests: what stands before it is.
    """
    body = {"model": dumps(model)}
    if request.system:
        body["instructions"] = dumps(request.system)
    if request.tools:  # an empty list is refused
        body["tools"] = as_list(map(_tool, request.tools))
    body |= {"store": dumps(False), "stream": dumps(True)}
    if REASONING_MODELS.match(model):
        body["include"] = dumps(["reasoning.encrypted_content"])
        if summaries:
            body["reasoning"] = dumps({"summary": "auto"})
    line = items.site_line(request.line) if request.line else b""
    return as_members(body | {"input": as_list([*request.history, line])})


@once_each
def _tool(tool: ToolDefinition) -> bytes:
    function = {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.schema,
        "strict": False,  # true, the API's default, refuses every schema with an optional property
    }
    return dumps(function)
