"""Chat Completions, through the `openai` SDK: what nearly every model server speaks."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence

from agents.engine.interfaces.messages import Message
from agents.engine.interfaces.provider import Answer, Request, TextDelta, ToolDefinition
from agents.engine.ledger import JSON
from agents.providers.chat import items
from agents.providers.chat.stream import ChatReader
from agents.providers.common.server import ModelServer, Reader
from agents.providers.common.values import dumps, joined

WANTS_REASONING = re.compile(r"deepseek", re.IGNORECASE)
"""Models that refuse a history in which an answer of theirs lacks its reasoning; an empty one is enough
(github.com/continuedev/continue/issues/11285)."""


class Chat:
    """The provider. Close it with `aclose()` in the loop that used it; whoever leaves an `ask` early closes that.

    Its history stands between the system message and the end of the body, as bytes.
    """

    def __init__(self, server: ModelServer) -> None:
        self._server = server
        self._reasoning = any(map(WANTS_REASONING.search, server.models))

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        await self._server.aclose()

    def encode(self, messages: Sequence[Message]) -> bytes:
        """See Provider.encode()."""
        return items.encode(messages, reasoning=self._reasoning)

    def ask(self, request: Request) -> AsyncGenerator[TextDelta | Answer, None]:
        """See Provider.ask()."""
        head: dict[str, JSON] = {}
        if request.tools:  # an empty list is refused
            head = {"tools": [_tool(tool) for tool in request.tools]}
        return ask(self._server, request, request.system, head, ChatReader())


def ask(
    server: ModelServer, request: Request, system: str, head: dict[str, JSON], reader: Reader
) -> AsyncGenerator[TextDelta | Answer, None]:
    """Ask with this system message; `head` is what the body says of tools. See Provider.ask()."""
    model = server.model(request.tier)
    first = {"model": model, **head, "stream": True, "stream_options": {"include_usage": True}}
    said_first = dumps({"role": "system", "content": system}) if system else b""
    body = b"".join([dumps(first)[:-1], b',"messages":[', joined([said_first, *request.history]), b"]}"])
    return server.ask("/chat/completions", model, body, reader)


def _tool(tool: ToolDefinition) -> dict[str, JSON]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}
