"""The JSON text protocol: tools for models that know no tool calls, as text over Chat Completions (S45..S52).

The model is told of its tools in the system message, and asks for one by answering with a JSON object.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from agents.engine.interfaces.messages import Message
from agents.engine.interfaces.provider import Answer, Request, TextDelta
from agents.engine.ledger import JSON
from agents.providers.chat import protocol as chat
from agents.providers.chat.stream import ChatReader
from agents.providers.common.server import ModelServer
from agents.providers.json import items
from agents.providers.json.answer import TRY, read
from agents.providers.json.stream import Held


class JsonProtocol:
    """The provider. Close it with `aclose()` in the loop that used it; whoever leaves an `ask` early closes that."""

    def __init__(self, server: ModelServer) -> None:
        self._server = server

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        await self._server.aclose()

    def encode(self, messages: Sequence[Message]) -> bytes:
        """See Provider.encode()."""
        return items.encode(messages)

    def ask(self, request: Request) -> AsyncGenerator[TextDelta | Answer, None]:
        """See Provider.ask(). An answer that tries to be a call and is none comes as one that is `unreadable`."""
        system = items.system_text(request.system, request.tools)
        return chat.ask(self._server, request, system, {}, JsonReader())


class JsonReader:
    """Takes the chunks of one answer, then gives the answer, read by the protocol. See `server.Reader`."""

    def __init__(self) -> None:
        self._chat = ChatReader()
        self._held = Held()
        self._shown = 0

    @property
    def ended(self) -> bool:
        """Whether the answer is whole."""
        return self._chat.ended

    def feed(self, event: JSON) -> str:
        """Take one chunk; returns the text that is no part of a call, whatever follows.

        With the end that is all the rest, where there is no call.
        """
        was_whole = self.ended
        text = self._held.feed(self._chat.feed(event))
        if self.ended and not was_whole and _is_text(self._chat.text):
            text = self._chat.text[self._shown :]
        self._shown += len(text)
        return text

    def answer(self) -> Answer:
        """The whole answer. Raises ProviderError where the stream ended too early or nothing was said."""
        said = self._chat.answer()
        if said.calls:  # of tools that it was never given
            why = f"It asks for a tool by a tool call of the API, which is not read here. {TRY}"
            raw = said.text or "\n".join(f"{call.name} {call.arguments}" for call in said.calls)
            return replace(said, text=raw, calls=(), unreadable=why)
        found = read(said.text)
        if found.call:
            return replace(said, text=found.text, calls=(found.call,))
        return replace(said, unreadable=found.problem)


def _is_text(raw: str) -> bool:
    found = read(raw)
    return not (found.call or found.problem)
