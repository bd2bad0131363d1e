"""Whether a history is one that a provider accepts (I10)."""

from __future__ import annotations

from collections.abc import Sequence

from agents.engine.interfaces.messages import AssistantMessage, Message, ResultMessage


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
