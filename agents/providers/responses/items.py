"""Encoding of messages as input items of the Responses API. Whatever they contain, the API accepts the result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from agents.engine.interfaces.messages import (
    AssistantMessage,
    CallRequest,
    Message,
    ResultMessage,
    SiteMessage,
    UserMessage,
)
from agents.engine.ledger import JSON
from agents.providers.common.values import BETWEEN, arguments_text, dumps, fit_call_id, fit_name

_REASONING = ("type", "id", "summary", "content", "encrypted_content")
"""The keys of a reasoning item that the API accepts back; it refuses the `status` that some servers add."""


def encode(messages: Sequence[Message], *, parts: bool = True) -> bytes:
    """Return the items as JSON, joined by commas. Equal messages give equal bytes, so that prompt caches hit.

    `parts`: the server takes a result in several parts.
    """
    return b",".join(dumps(item) for message in messages for item in _items(message, parts))


def _items(message: Message, parts: bool) -> Iterator[dict[str, JSON]]:
    if isinstance(message, UserMessage):
        texts = [message.text] if message.text or not message.notes else []
        yield {"role": "user", "content": _parts([*texts, *message.notes])}
    elif isinstance(message, SiteMessage):
        yield _site_item(message.text)
    elif isinstance(message, AssistantMessage):
        yield from _assistant_items(message)
    else:
        yield {
            "type": "function_call_output",
            "call_id": fit_call_id(message.call_id),
            "output": _output(message, parts),
        }


def site_line(text: str) -> bytes:
    """Return the site's own line as an item that follows the history."""
    return dumps(_site_item(text))


def _site_item(text: str) -> dict[str, JSON]:
    return {"role": "developer", "content": _parts([text])}


def _parts(texts: Iterable[str]) -> list[JSON]:
    return [{"type": "input_text", "text": text} for text in texts]


def _output(message: ResultMessage, parts: bool) -> JSON:
    """Return the output of a call: its text, or parts if there is more to say."""
    return _parts(message.texts) if parts and len(message.texts) > 1 else BETWEEN.join(message.texts)


def _assistant_items(message: AssistantMessage) -> list[dict[str, JSON]]:
    """Return text, calls and reasoning in their original order; without reasoning, the text first."""
    items: list[dict[str, JSON]] = []
    text, calls = message.text, list(message.calls)
    for kept in message.items:
        match kept:
            case {"type": "reasoning"} if kept.get("encrypted_content") or kept.get("content"):
                items.append({"summary": []} | {key: kept[key] for key in _REASONING if kept.get(key) is not None})
            case {"type": "message"} if text:
                items.append(_said(text, kept.get("phase")))
                text = ""
            case {"type": "function_call"} if calls:
                items.append(_called(calls.pop(0)))
    if text:
        items.append(_said(text))
    items.extend(map(_called, calls))
    while items and items[-1]["type"] == "reasoning":  # the API refuses reasoning without the item that followed it
        items.pop()
    return items


def _said(text: str, phase: JSON = None) -> dict[str, JSON]:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return {**item, "phase": phase} if phase else item


def _called(call: CallRequest) -> dict[str, JSON]:
    name, arguments = fit_name(call.name), arguments_text(call.arguments)
    return {"type": "function_call", "call_id": fit_call_id(call.call_id), "name": name, "arguments": arguments}
