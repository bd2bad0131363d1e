"""The provider: what the engine sends to a model API and gets back. `agents.providers` has the implementations."""

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
"""What cut an answer short, by its `finish`. An answer with any other `finish` is complete."""

PARSE_FAILURE = "parse_failure"
"""The error code of a round with an unreadable answer (S51)."""

FINAL_ANSWER = "final_answer"
"""The tool by which a model gives an answer of a given form: its input is the answer."""


@dataclass(frozen=True, eq=False)
class ToolDefinition:
    """A tool as a model sees it: its wire name, what it does, and the JSON Schema of its input.

    `category` is the name of the group that it belongs to; "" for none. A tool of an agent has one for all its rounds,
    so that a provider can keep what it makes of it.
    """

    name: str
    description: str
    schema: dict[str, JSON]
    category: str = ""


@dataclass(frozen=True)
class Request:
    """One question to a model. `history` holds the output of `Provider.encode` for each finished round, oldest first.

    `line` is the site's own, about a turn in which nobody spoke, or that goes on. It is no part of the history: the
    provider puts it where the model reads it with this request only. Without it, the history is not empty.
    """

    tier: str
    system: str
    tools: tuple[ToolDefinition, ...]
    history: Sequence[bytes]
    line: str = ""


@dataclass(frozen=True)
class TextDelta:
    """A piece of the answer's text as it streams in. The Answer repeats the whole text."""

    text: str


@dataclass(frozen=True)
class ToolRequest:
    """A call the model asks for, by wire name. `raw` holds the arguments if they are not a JSON object.

    `terminate`: the model says that the turn ends with this call if it succeeds; only in the JSON protocol.
    """

    name: str
    arguments: dict[str, JSON]
    call_id: str = ""
    raw: str | None = None
    terminate: bool = False


@dataclass(frozen=True)
class Answer:
    """A complete answer.

    `items` is opaque to us: it is sent back in later requests if the API asks for that (reasoning). `reasoning` is what
    the model reveals of its reasoning. `cost_nano_usd` is in billionths of a US dollar; None if the price is unknown.
    `unreadable` says why the answer cannot be read (a parse failure), else ""; then `text` is the whole raw answer.
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

    @property
    def needs_user(self) -> bool:
        """Whether its server insists on a user's message in every turn, and on roles that alternate.

        Then the history has them, and requests have no `line`.
        """
        ...

    @property
    def encoding(self) -> str:
        """The name of the way in which messages are encoded. With the same name, equal messages give equal bytes."""
        ...

    def encode(self, messages: Sequence[Message]) -> bytes:
        """Return `messages` as the API's own JSON items, joined by commas without brackets; b"" for none."""
        ...

    def ask(self, request: Request) -> AsyncGenerator[TextDelta | Answer, None]:
        """Ask once. Yields text as it arrives, and the Answer last.

        Raises ProviderError if the API refuses or cannot be reached, or if the stream ends before the answer does.
        """
        ...

    async def aclose(self) -> None:
        """Close the running loop's connections."""
        ...
