"""The wire format of the Responses API: the JSON of a response, and the events that stream it.

Source: developers.openai.com/api/reference/resources/responses/streaming-events.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

from agents.engine.ledger import JSON
from agents.providers.demo.script import Call, Reply

PIECE_CHARACTERS = 16
"""Characters of text in one event: a few tokens."""

TOKEN_CHARACTERS = 4
"""Characters of a token, roughly, in English: help.openai.com/en/articles/4936856."""

Event = dict[str, Any]


def response(reply: Reply, body: dict[str, JSON], body_bytes: int) -> dict[str, JSON]:
    """Return the whole response to the request `body`, which was `body_bytes` long."""
    output = [*_reasoning_items(reply, body), *_message_items(reply), *map(_call_item, reply.calls)]
    if reply.incomplete and output:
        _cut(output[-1])
    return {
        "id": _new_id("resp"),
        "object": "response",
        "created_at": int(time.time()),
        "status": "incomplete" if reply.incomplete else "completed",
        "error": None,
        "incomplete_details": {"reason": reply.incomplete} if reply.incomplete else None,
        "instructions": None,
        "metadata": {},
        "model": body["model"],
        "output": output,
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": body.get("store", True),
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": _usage(reply, body_bytes),
    }


def events(whole: dict[str, JSON]) -> Iterator[Event]:
    """Yield the events that stream the response `whole`, in the real API's order and numbered from 0."""
    for number, event in enumerate(_events(whole)):
        yield event | {"sequence_number": number}


def sse(event: JSON) -> bytes:
    """Return one server-sent event as bytes. Bytes are returned unchanged."""
    if isinstance(event, bytes):
        return event
    name = event.get("type") if isinstance(event, dict) else None
    data = json.dumps(event, separators=(",", ":"))
    return (f"event: {name}\ndata: {data}\n\n" if name else f"data: {data}\n\n").encode()


def pieces(text: str) -> Iterator[str]:
    """Yield the pieces in which the text is streamed."""
    return (text[at : at + PIECE_CHARACTERS] for at in range(0, len(text), PIECE_CHARACTERS))


def _events(whole: dict[str, JSON]) -> Iterator[Event]:
    begun = {**whole, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    stream = {"reasoning": _reasoning_events, "message": _message_events, "function_call": _call_events}
    for index, item in enumerate(whole["output"]):
        at = {"output_index": index}
        yield {"type": "response.output_item.added", **at, "item": _announced(item)}
        yield from stream[item["type"]](item, {"item_id": item["id"], **at})
        yield {"type": "response.output_item.done", **at, "item": item}
    yield {"type": f"response.{whole['status']}", "response": whole}


def _reasoning_events(item: dict[str, JSON], at: Event) -> Iterator[Event]:
    for index, part in enumerate(item["summary"]):
        here = {**at, "summary_index": index}
        yield {"type": "response.reasoning_summary_part.added", **here, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield {"type": "response.reasoning_summary_text.delta", **here, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **here, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **here, "part": part}


def _message_events(item: dict[str, JSON], at: Event) -> Iterator[Event]:
    for index, part in enumerate(item["content"]):
        here = {**at, "content_index": index}
        yield {"type": "response.content_part.added", **here, "part": {**part, "text": ""}}
        for piece in pieces(part["text"]):
            yield {"type": "response.output_text.delta", **here, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **here, "text": part["text"], "logprobs": []}
        yield {"type": "response.content_part.done", **here, "part": part}


def _call_events(item: dict[str, JSON], at: Event) -> Iterator[Event]:
    for piece in pieces(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}
    yield {"type": "response.function_call_arguments.done", **at, "arguments": item["arguments"]}


def _announced(item: dict[str, JSON]) -> dict[str, JSON]:
    """Return an output item as it is announced, still empty."""
    empty = {"summary": [], "content": [], "arguments": "", "status": "in_progress", "encrypted_content": ""}
    return {key: empty.get(key, value) for key, value in item.items()}


def _reasoning_items(reply: Reply, body: dict[str, JSON]) -> Iterator[dict[str, JSON]]:
    if reply.reasoning:
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        item = {"id": _new_id("rs"), "type": "reasoning", "summary": summary}
        if "reasoning.encrypted_content" in (body.get("include") or ()):
            item["encrypted_content"] = base64.b64encode(reply.reasoning.encode()).decode()
        yield item


def _message_items(reply: Reply) -> Iterator[dict[str, JSON]]:
    if reply.text:
        part = {"type": "output_text", "annotations": [], "logprobs": [], "text": reply.text}
        whole = {"type": "message", "status": "completed", "role": "assistant", "content": [part]}
        yield {"id": _new_id("msg"), **whole}


def _call_item(call: Call) -> dict[str, JSON]:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
    return {
        "id": _new_id("fc"),
        "type": "function_call",
        "status": "completed",
        "arguments": arguments,
        "call_id": call.call_id or _new_id("call"),
        "name": call.name,
    }


def _cut(item: dict[str, JSON]) -> None:
    """Cut the item in half, as in an answer that reached its limit."""
    item["status"] = "incomplete"
    holder, key = (item, "arguments") if item["type"] == "function_call" else (item["content"][0], "text")
    holder[key] = holder[key][: len(holder[key]) // 2]


def _usage(reply: Reply, body_bytes: int) -> dict[str, JSON]:
    spoken = len(reply.text) + sum(len(call.name) + len(str(call.arguments)) for call in reply.calls)
    thought = len(reply.reasoning) // TOKEN_CHARACTERS
    made_up = {"input_tokens": body_bytes // TOKEN_CHARACTERS, "reasoning_tokens": thought}
    counts = made_up | {"output_tokens": spoken // TOKEN_CHARACTERS + thought} if reply.usage is None else reply.usage
    given, made = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": counts.get("cached_tokens", 0), "cache_write_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": counts.get("reasoning_tokens", 0)},
        "total_tokens": given + made,
    }


def _new_id(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex}"
