"""The wire format of the Responses API: the JSON of a response, and the events that stream it.

Source: developers.openai.com/api/reference/resources/responses/streaming-events.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from agents.engine.interfaces.provider import ToolRequest
from agents.engine.ledger import JSON
from agents.providers.demo.reply import Reply

PIECE_CHARACTERS = 16
"""Characters of text in one event: a few tokens."""

TOKEN_CHARACTERS = 4
"""Characters of a token, roughly, in English: help.openai.com/en/articles/4936856."""

Event = dict[str, Any]
ItemEvents = Callable[[dict[str, JSON], int], Iterator[Event]]


def response(reply: Reply, body: dict[str, JSON], body_bytes: int) -> dict[str, JSON]:
    """Return the whole response to the request `body`, which was `body_bytes` long."""
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": body["model"],
        "output": [*_message_items(reply), *map(_call_item, reply.calls)],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _usage(reply, body_bytes),
    }


def events(whole: dict[str, JSON], of_item: ItemEvents | None = None) -> Iterator[Event]:
    """Yield the events that stream the response `whole`, in the real API's order and numbered from 0.

    `of_item` yields those of one output item, given the item and its index; by default `item_events` does.
    """
    begun = {**whole, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    shown = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *(event for index, item in enumerate(whole["output"]) for event in (of_item or item_events)(item, index)),
        {"type": f"response.{whole['status']}", "response": whole},
    ]
    for number, event in enumerate(shown):
        yield event | {"sequence_number": number}


def sse(event: JSON) -> bytes:
    """Return one server-sent event as bytes."""
    name = event.get("type") if isinstance(event, dict) else None
    data = json.dumps(event, separators=(",", ":"))
    return (f"event: {name}\ndata: {data}\n\n" if name else f"data: {data}\n\n").encode()


def pieces(text: str) -> Iterator[str]:
    """Yield the pieces in which the text is streamed."""
    return (text[at : at + PIECE_CHARACTERS] for at in range(0, len(text), PIECE_CHARACTERS))


def new_id(kind: str) -> str:
    """Return a unique id of this kind: `resp_...`."""
    return f"{kind}_{uuid.uuid4().hex}"


def item_events(item: dict[str, JSON], index: int) -> Iterator[Event]:
    """Yield the events of a message or a call: it is announced while empty, streamed, and given whole."""
    at = {"output_index": index}
    stream = _message_events if item["type"] == "message" else _call_events
    empty = {"content": [], "arguments": "", "status": "in_progress"}
    yield {"type": "response.output_item.added", **at, "item": {key: empty.get(key, item[key]) for key in item}}
    yield from stream(item, {"item_id": item["id"], **at})
    yield {"type": "response.output_item.done", **at, "item": item}


def _message_events(item: dict[str, JSON], at: Event) -> Iterator[Event]:
    (part,) = item["content"]
    here = {**at, "content_index": 0}
    yield {"type": "response.content_part.added", **here, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", **here, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **here, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **here, "part": part}


def _call_events(item: dict[str, JSON], at: Event) -> Iterator[Event]:
    for piece in pieces(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
    yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]}


def _message_items(reply: Reply) -> Iterator[dict[str, JSON]]:
    if reply.text:
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": reply.text}
        whole = {"type": "message", "status": "completed", "role": "assistant", "content": [part]}
        yield {"id": new_id("msg"), **whole}


def _call_item(call: ToolRequest) -> dict[str, JSON]:
    return {
        "id": new_id("fc"),
        "type": "function_call",
        "status": "completed",
        "arguments": json.dumps(call.arguments),
        "call_id": new_id("call"),
        "name": call.name,
    }


def _usage(reply: Reply, body_bytes: int) -> dict[str, JSON]:
    """Return estimates of the tokens, from the lengths."""
    written = len(reply.text) + sum(len(call.name) + len(str(call.arguments)) for call in reply.calls)
    given, made = body_bytes // TOKEN_CHARACTERS, written // TOKEN_CHARACTERS
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given + made,
    }
