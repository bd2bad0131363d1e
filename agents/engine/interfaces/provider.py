"""What the engine asks of a model API, and what comes back. Implementations live in `agents.providers`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agents.engine.interfaces.messages import Message
from agents.engine.ledger import JSON

CUT_BY = {
    "length": "cut off at the model's output limit",
    "content_filter": "cut off by the model's content filter",
}
"""By what an answer was cut, by its `finish`. An answer with any other finish is whole."""

PARSE_FAILURE = "parse_failure"
"""The code of a round whose answer could not be read (S51)."""


@dataclass(frozen=True)
class ToolDefinition:
    """A tool as a model sees it: its wire name, what it does, and the JSON Schema of its input."""

    name: str
    description: str
    schema: dict[str, JSON]


@dataclass(frozen=True)
class Request:
    """One question to a model. `history` holds what `Provider.encode` made of each finished round, oldest first.

    It begins with a user's message: many servers refuse one that begins with the model's, and all refuse an empty one.
    """

    tier: str
    system: str
    tools: tuple[ToolDefinition, ...]
    history: Sequence[bytes]


@dataclass(frozen=True)
class TextDelta:
    """A piece of the answer's text, as it streams in. The whole text comes again in the Answer."""

    text: str


@dataclass(frozen=True)
class ToolRequest:
    """A call the model asks for, under its wire name. `raw` is set where the arguments are no JSON object.

    `terminate`: the model says that this call, if it succeeds, is the last of the turn; in the JSON protocol only.
    """

    name: str
    arguments: dict[str, JSON]
    call_id: str = ""
    raw: str | None = None
    terminate: bool = False


@dataclass(frozen=True)
class Answer:
    """A whole answer.

    `items` is opaque to us: sent back in later requests where the API asks for it (reasoning). `reasoning` is what the
    model tells of its reasoning. `cost_nano_usd` is in billionths of a US dollar; None where no price is known.
    `unreadable` says why the answer cannot be read, where it cannot (a parse failure): then `text` is all of it, raw.
    """

    text: str = ""
    calls: tuple[ToolRequest, ...] = ()
    usage: dict[str, int] = field(default_factory=dict)
    model: str = ""
    finish: str = "stop"
    items: tuple[JSON, ...] = ()
    reasoning: str = ""
    cost_nano_usd: int | None = None
    unreadable: str = ""


class Provider(Protocol):
    """A model API."""

    def encode(self, messages: Sequence[Message]) -> bytes:
        """`messages` as the API's own JSON items, joined by commas without brackets; b"" for none."""
        ...

    def ask(self, request: Request) -> AsyncGenerator[TextDelta | Answer, None]:
        """Ask once. Yields text as it comes and the Answer last.

        Raises ProviderError when the API refuses, cannot be reached, or the stream ends before the answer is whole.
        """
        ...

    async def aclose(self) -> None:
        """Close the running loop's connections."""
        ...
