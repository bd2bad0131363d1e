"""Messages as Chat Completions takes them. Whatever stands in the messages, the API accepts what comes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agents.engine.interfaces.messages import AssistantMessage, CallRequest, Message, ResultMessage, UserMessage
from agents.engine.ledger import JSON
from agents.providers.chat.role_alternation import in_turns
from agents.providers.common.values import BETWEEN, arguments_text, as_text, dumps, fit_call_id, fit_name

CALL_ID_CHARACTERS = 40
"""The longest id of a call that the API takes here; Responses takes 64."""

REASONING = "reasoning_content"
"""A server that gives its reasoning under this name wants it back: "Missing `reasoning_content` field in the assistant
message" (github.com/openai/openai-agents-python/issues/2155). As an opaque item, its type."""

SAID_NOTHING = "(nothing)"
"""Instead of an empty content, which some servers refuse."""

Item = dict[str, JSON]


def encode(messages: Sequence[Message], *, reasoning: bool = False) -> bytes:
    """The messages as JSON, joined by commas. Equal messages give equal bytes, so that prompt caches hit.

    `reasoning`: every message of the model has some, be it empty.
    """
    return b",".join(dumps(item) for message in in_turns(messages) for item in _items(message, reasoning))


def said_by_user(message: UserMessage) -> Item:
    """What a person said, and the site's notes below it, as one text: not every server reads more than one."""
    return {"role": "user", "content": BETWEEN.join(filter(None, [message.text, *message.notes])) or SAID_NOTHING}


def _items(message: Message, reasoning: bool) -> Iterator[Item]:
    if isinstance(message, UserMessage):
        yield said_by_user(message)
    elif isinstance(message, ResultMessage):
        yield {"role": "tool", "tool_call_id": _call_id(message.call_id), "content": message.content}
    else:
        yield _answer(message, reasoning)


def _answer(message: AssistantMessage, reasoning: bool) -> Item:
    item: Item = {"role": "assistant", "content": message.text or None}
    thought = "".join(_thoughts(message))
    if thought or reasoning:
        item[REASONING] = thought
    if message.calls:
        item["tool_calls"] = [_called(call) for call in message.calls]
    return item


def _thoughts(message: AssistantMessage) -> Iterator[str]:
    for kept in message.items:
        if isinstance(kept, dict) and kept.get("type") == REASONING:
            yield as_text(kept.get("text"))


def _called(call: CallRequest) -> Item:
    function = {"name": fit_name(call.name), "arguments": arguments_text(call.arguments)}
    return {"id": _call_id(call.call_id), "type": "function", "function": function}


def _call_id(call_id: str) -> str:
    return fit_call_id(call_id, CALL_ID_CHARACTERS)
