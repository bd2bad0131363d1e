"""Messages: what a model is sent, independent of any provider."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.engine.ledger import JSON


@dataclass(frozen=True)
class UserMessage:
    """A message from a person. `notes` are added by the site, one for each attachment."""

    text: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class CallRequest:
    """A tool call in an assistant message: `call_id` pairs it with its result, `name` is the tool's wire name."""

    call_id: str
    name: str
    arguments: dict[str, JSON]


@dataclass(frozen=True)
class AssistantMessage:
    """One answer of the model: text, calls or both. `items` are the provider's opaque items of that answer."""

    text: str = ""
    calls: tuple[CallRequest, ...] = ()
    items: tuple[JSON, ...] = ()


@dataclass(frozen=True)
class ResultMessage:
    """The result of one call, as text. It follows the message that asked, together with the other results (I10)."""

    call_id: str
    name: str
    content: str


Message = UserMessage | AssistantMessage | ResultMessage


def problems(messages: Sequence[Message]) -> list[str]:
    """Return what a provider would reject: calls without exactly one result right after them, and empty messages."""
    found: list[str] = []
    open_calls: list[str] = []
    seen: set[str] = set()
    for message in messages:
        if isinstance(message, ResultMessage):
            if message.call_id in open_calls:
                open_calls.remove(message.call_id)
            else:
                found.append(f"a result for {message.call_id!r}, which is not open")
            continue
        if open_calls:
            found.append(f"no result for {open_calls!r}")
            open_calls = []
        if isinstance(message, AssistantMessage):
            if not (message.text or message.calls or message.items):
                found.append("an empty assistant message")
            for call in message.calls:
                if not call.call_id or call.call_id in seen:
                    found.append(f"the call id {call.call_id!r} is empty or used twice")
                seen.add(call.call_id)
                open_calls.append(call.call_id)
    if open_calls:
        found.append(f"no result for {open_calls!r}")
    return found
