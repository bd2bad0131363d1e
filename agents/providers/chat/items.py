"""Encoding of messages for Chat Completions. Whatever the messages contain, the API accepts the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agents.engine.interfaces.messages import (
    AssistantMessage,
    CallRequest,
    Message,
    ResultMessage,
    SiteMessage,
    UserMessage,
)
from agents.engine.ledger import JSON
from agents.providers.chat.role_alternation import alternate_roles
from agents.providers.common.values import BETWEEN, arguments_text, as_objects, as_text, dumps, fit_call_id, fit_name

REASONING = "reasoning_content"
"""The field of the reasoning, and the type of its opaque item. A server that uses this field wants it back: "Missing
`reasoning_content` field in the assistant message" (github.com/openai/openai-agents-python/issues/2155)."""

SAID_NOTHING = "(nothing)"
"""Sent in place of an empty content, which some servers refuse."""

Item = dict[str, JSON]


def encode(
    messages: Sequence[Message], *, alternate: bool = False, reasoning: bool = False, parts: bool = True
) -> bytes:
    """Return the messages as JSON, joined by commas. Equal messages give equal bytes, so that prompt caches hit.

    `alternate`: the server insists on roles that alternate. `reasoning`: every message of the model gets a reasoning
    field, even an empty one. `parts`: the server takes a result in several parts.
    """
    told = alternate_roles(messages) if alternate else messages
    return b",".join(dumps(item) for message in told for item in _items(message, reasoning, parts))


def said_by_user(message: UserMessage) -> Item:
    """Return a person's message with the site's notes below it, as one text: not every server reads more than one."""
    return {"role": "user", "content": BETWEEN.join(filter(None, [message.text, *message.notes])) or SAID_NOTHING}


def said_by_site(message: SiteMessage) -> Item:
    """Return a line of the site. Servers that take no such message in the middle are never sent one."""
    return {"role": "system", "content": message.text}


def _items(message: Message, reasoning: bool, parts: bool) -> Iterator[Item]:
    if isinstance(message, UserMessage):
        yield said_by_user(message)
    elif isinstance(message, SiteMessage):
        yield said_by_site(message)
    elif isinstance(message, ResultMessage):
        yield {"role": "tool", "tool_call_id": fit_call_id(message.call_id), "content": _content(message, parts)}
    elif message.text or message.calls:  # one of neither is refused
        yield _answer(message, reasoning)


def _content(message: ResultMessage, parts: bool) -> JSON:
    """Return the content of a result: its text, or parts if there is more to say."""
    if len(message.texts) == 1 or not parts:
        return BETWEEN.join(message.texts)
    return [{"type": "text", "text": text} for text in message.texts]


def _answer(message: AssistantMessage, reasoning: bool) -> Item:
    item: Item = {"role": "assistant", "content": message.text or None}
    kept = as_objects([*message.items])
    thought = "".join(as_text(each.get("text")) for each in kept if each.get("type") == REASONING)
    if thought or reasoning:
        item[REASONING] = thought
    if message.calls:
        item["tool_calls"] = [_called(call) for call in message.calls]
    return item


def _called(call: CallRequest) -> Item:
    function = {"name": fit_name(call.name), "arguments": arguments_text(call.arguments)}
    return {"id": fit_call_id(call.call_id), "type": "function", "function": function}
