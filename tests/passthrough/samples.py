"""Answers in the shapes of OpenAI's API, with texts that are not ASCII."""

from __future__ import annotations

import base64
import json
import struct
from typing import Any

TEXT = "Grüße, 世界 🌍"
CREATED = 1_780_000_000
USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 7,
    "total_tokens": 18,
    "prompt_tokens_details": {"cached_tokens": 5},
    "completion_tokens_details": {"reasoning_tokens": 3},
}
COUNTED = {"input_tokens": 11, "cached_tokens": 5, "output_tokens": 7, "reasoning_tokens": 3}
"""The same in the site's own words."""
RESPONSES_USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 0},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 18,
}
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Zürich"}'}}


def encoded(value: Any) -> bytes:
    """Return JSON as no library of ours writes it: a proxy that reads and writes it again is found out."""
    return json.dumps(value, ensure_ascii=False, separators=(" ,", " : ")).encode() + b"\n"


def completion(content: str | None = TEXT, calls: list[Any] | None = None, model: str = "m") -> bytes:
    """Return a chat completion."""
    message = {"role": "assistant", "content": content, "refusal": None} | ({"tool_calls": calls} if calls else {})
    finished = "tool_calls" if calls else "stop"
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finished}
    whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": CREATED, "model": model, "choices": [choice]}
    return encoded({**whole, "usage": USAGE, "x_unknown": {"of": ["a", "later", "version"]}})


def sse(value: Any, event: str = "") -> bytes:
    """Return an event of a stream."""
    return (f"event: {event}\n" if event else "").encode() + b"data: " + encoded(value).strip() + b"\n\n"


def chunks(text: str = TEXT, calls: list[Any] | None = None, *, usage: bool = False) -> list[bytes]:
    """Return a chat completion as a stream of events, one for each character of the text."""
    common = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": CREATED, "model": "m"}

    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return sse({**common, "choices": [choice]} | ({"usage": None} if usage else {}))

    events = [event({"role": "assistant", "content": ""})]
    if calls:
        events += [event({"tool_calls": [{"index": index, **call}]}) for index, call in enumerate(calls)]
    else:
        events += [event({"content": character}) for character in text]
    events.append(event({}, "tool_calls" if calls else "stop"))
    if usage:
        events.append(sse({**common, "choices": [], "usage": USAGE}))
    return [*events, b"data: [DONE]\n\n"]


def response(text: str = TEXT, status: str = "completed") -> dict[str, Any]:
    """Return a response of the Responses API."""
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "model": "m",
        "output": [item] if status == "completed" else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
        "usage": RESPONSES_USAGE if status == "completed" else None,
    }


def response_events(text: str = TEXT) -> list[bytes]:
    """Return a response as a stream of events."""
    item = response(text)["output"][0]
    part = item["content"][0]
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    started = {**item, "status": "in_progress", "content": []}
    deltas = [{"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []} for piece in text]
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": response(text, "in_progress")},
        {"type": "response.output_item.added", "output_index": 0, "item": started},
        {"type": "response.content_part.added", **at, "part": {**part, "text": ""}},
        *deltas,
        {"type": "response.output_text.done", **at, "text": text, "logprobs": []},
        {"type": "response.content_part.done", **at, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": response(text)},
    ]
    return [sse({**event, "sequence_number": number}, event["type"]) for number, event in enumerate(events)]


def legacy(text: str = TEXT) -> bytes:
    """Return a completion of the old API without a chat."""
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": "stop"}
    whole = {"id": "cmpl-1", "object": "text_completion", "created": CREATED, "model": "m", "choices": [choice]}
    return encoded({**whole, "usage": USAGE})


FLOATS = [0.5, -0.25, 1e-5, 3.0]


def embeddings(as_base64: bool) -> bytes:
    """Return one vector, FLOATS."""
    packed = base64.b64encode(struct.pack(f"<{len(FLOATS)}f", *FLOATS)).decode()
    vector = {"object": "embedding", "index": 0, "embedding": packed if as_base64 else FLOATS}
    usage = {"prompt_tokens": 4, "total_tokens": 4}
    return encoded({"object": "list", "model": "m", "data": [vector], "usage": usage})


def models(*names: str) -> bytes:
    """Return a list of models, each with a field that nobody knows."""
    listed = [{"id": name, "object": "model", "created": CREATED, "owned_by": "maker", "x_ctx": 1} for name in names]
    return encoded({"object": "list", "data": listed})


def error(message: str, code: str | None = None) -> bytes:
    """Return an error."""
    return encoded({"error": {"message": message, "type": "scripted", "param": None, "code": code}})
