"""Messages in the order that every server of Chat Completions takes: user and model in turns, results after calls.

Many templates of open models refuse two messages of one role in a row ("Conversation roles must alternate"), Mistral's
API also a user's message right after a result ("Unexpected role 'user' after role 'tool'").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agents.engine.interfaces.messages import AssistantMessage, Message, ResultMessage, UserMessage
from agents.providers.common.values import BETWEEN

WENT_ON = "(The person said something next.)"
"""Stands where the model's answer to a result would, which a server wants to see before the user speaks."""


def in_turns(messages: Iterable[Message]) -> list[Message]:
    """The messages with neighbours of one role joined; those that say nothing are left out."""
    ordered: list[Message] = []
    for message in messages:
        if isinstance(message, AssistantMessage) and not (message.text or message.calls):
            continue
        last = ordered[-1] if ordered else None
        if isinstance(last, ResultMessage) and isinstance(message, UserMessage):
            ordered.append(AssistantMessage(WENT_ON))
        joined = _joined(last, message)
        if joined:
            ordered[-1] = joined
        else:
            ordered.append(message)
    return ordered


def _joined(last: Message | None, message: Message) -> Message | None:
    if isinstance(last, UserMessage) and isinstance(message, UserMessage):
        said = filter(None, [last.text, *last.notes, message.text, *message.notes])
        return UserMessage(BETWEEN.join(said))
    if isinstance(last, AssistantMessage) and isinstance(message, AssistantMessage) and not last.calls:
        text = BETWEEN.join(filter(None, [last.text, message.text]))
        return replace(message, text=text, items=(*last.items, *message.items))
    return None
