"""The Chat Completions provider, built on the `openai` SDK: for the API that nearly every model server has."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence

from agents.engine.interfaces.messages import Message
from agents.engine.interfaces.provider import Answer, Request, TextDelta, ToolDefinition
from agents.providers.chat import items
from agents.providers.chat.stream import ChatReader
from agents.providers.common.server import ModelServer
from agents.providers.common.values import BETWEEN, as_list, as_members, dumps, once_each

WANTS_REASONING = re.compile(r"deepseek", re.IGNORECASE)
"""Models that refuse a history in which one of their answers lacks its reasoning; an empty one is enough
(github.com/continuedev/continue/issues/11285)."""


class Chat:
    """The provider for Chat Completions. Close it with `aclose()` in the loop that used it.

    A caller that leaves an `ask` early must close that generator. The history is inserted into the body as bytes.
    """

    reader = ChatReader
    """The class of an answer's reader; a subclass may have another."""

    def __init__(self, server: ModelServer) -> None:
        self._server = server
        self._reasoning = any(map(WANTS_REASONING.search, server.models.values()))

    @property
    def needs_user(self) -> bool:
        """Whether the server insists on a user's message in every turn, and on roles that alternate."""
        return self._server.needs_user

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        await self._server.aclose()

    @property
    def encoding(self) -> str:
        """The name of the way in which messages are encoded, with all that it depends on."""
        server = self._server
        return f"{type(self).__name__} {server.needs_user} {self._reasoning} {server.takes_parts}"

    def encode(self, messages: Sequence[Message]) -> bytes:
        """Return the messages as bytes, for the history of a request."""
        return items.encode(
            messages, alternate=self.needs_user, reasoning=self._reasoning, parts=self._server.takes_parts
        )

    def ask(self, request: Request) -> AsyncGenerator[TextDelta | Answer, None]:
        """Ask the model. Yields the text as it arrives, and the answer last.

        The site's line ends the system message: other places for it are refused by many templates of open models.
        """
        model = self._server.models[request.tier]
        head = {"model": dumps(model)}
        if request.tools:  # an empty list is refused
            head["tools"] = as_list(map(_tool, request.tools))
        head |= {"stream": dumps(True), "stream_options": dumps({"include_usage": True})}
        system = BETWEEN.join(filter(None, [request.system, request.line]))
        first = dumps({"role": "system", "content": system}) if system else b""
        body = as_members(head | {"messages": as_list([first, *request.history])})
        return self._server.ask("/chat/completions", model, body, self.reader())


@once_each
def _tool(tool: ToolDefinition) -> bytes:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return dumps({"type": "function", "function": function})
