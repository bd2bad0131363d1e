"""The JSON text provider: tools for models without tool calls, as text over Chat Completions (S45..S52).

The system message describes the tools, and the model asks for one by answering with a JSON object.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from agents.engine.interfaces.messages import Message
from agents.engine.interfaces.provider import Answer, Request, TextDelta
from agents.engine.ledger import JSON
from agents.providers.chat.protocol import Chat
from agents.providers.chat.stream import ChatReader
from agents.providers.json import items
from agents.providers.json.answer import TRY, read
from agents.providers.json.stream import Held


class JsonReader(ChatReader):
    """The reader of one answer, parsed by the protocol. See `server.Reader`."""

    def __init__(self) -> None:
        super().__init__()
        self._held = Held()
        self._shown = 0

    def feed(self, event: JSON) -> str:
        """Add one chunk. Returns the text that cannot be part of a call, whatever follows.

        At the end of an answer without a call, that is all the remaining text.
        """
        was_whole = self.ended
        text = self._held.feed(super().feed(event))
        if self.ended and not was_whole and _is_text(self.text):
            text = self.text[self._shown :]
        self._shown += len(text)
        return text

    def answer(self) -> Answer:
        """Return the complete answer. Raises ProviderError if the stream ended too early or the answer is empty."""
        said = super().answer()
        if said.calls:  # calls of the API, although it was given no tools
            why = f"It asks for a tool by a tool call of the API, which is not read here. {TRY}"
            raw = said.text or "\n".join(f"{call.name} {call.arguments}" for call in said.calls)
            return replace(said, text=raw, calls=(), unreadable=why)
        found = read(said.text)
        if found.call:
            return replace(said, text=found.text, calls=(found.call,))
        return replace(said, unreadable=found.problem)


class JsonProtocol(Chat):
    """The provider for the JSON text protocol. A malformed call makes its answer `unreadable`."""

    reader = JsonReader

    def encode(self, messages: Sequence[Message]) -> bytes:
        """Return the messages as bytes, for the history of a request."""
        return items.encode(messages, alternate=self.needs_user)

    def ask(self, request: Request) -> AsyncGenerator[TextDelta | Answer, None]:
        """Ask the model, with its tools described in the system message."""
        system = items.system_text(request.system, request.tools)
        return super().ask(replace(request, system=system, tools=()))


def _is_text(raw: str) -> bool:
    found = read(raw)
    return not (found.call or found.problem)
