"""Role alternation: messages in the order that every Chat Completions server accepts.

User and model alternate, and results follow their calls. Many templates of open models refuse two messages of one role
in a row ("Conversation roles must alternate"); Mistral's API also refuses a user's message right after a result
("Unexpected role 'user' after role 'tool'").
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from agents.engine.interfaces.messages import AssistantMessage, Message, ResultMessage, UserMessage
from agents.providers.common.values import BETWEEN

WENT_ON = "(The person said something next.)"
"""Sent in place of the model's answer to a result, which a server requires before the next user message."""


def alternate_roles(messages: Iterable[Message]) -> list[Message]:
    """Return the messages with neighbours of one role joined, and without empty ones."""
    ordered: list[Message] = []
    for message in messages:
        if isinstance(message, AssistantMessage) and not (message.text or message.calls):
            continue
        last = ordered[-1] if ordered else None
        if isinstance(last, ResultMessage) and isinstance(message, UserMessage):
            ordered.append(AssistantMessage(WENT_ON))
        if joined := _join(last, message):
            ordered[-1] = joined
        else:
            ordered.append(message)
    return ordered


def _join(last: Message | None, message: Message) -> Message | None:
    if isinstance(last, UserMessage) and isinstance(message, UserMessage):
        said = filter(None, [last.text, *last.notes, message.text, *message.notes])
        return UserMessage(BETWEEN.join(said))
    if isinstance(last, AssistantMessage) and isinstance(message, AssistantMessage) and not last.calls:
        text = BETWEEN.join(filter(None, [last.text, message.text]))
        return replace(message, text=text, items=(*last.items, *message.items))
    return None
