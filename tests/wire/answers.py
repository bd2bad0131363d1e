"""What a script does to the demo model's answer: reasoning, token counts of its own, a cut in the last item."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from agents.engine.ledger import JSON
from agents.providers.demo import chat, wire
from tests.wire.script import Call, Reply

Item = dict[str, JSON]

FINISHED = {"max_output_tokens": "length", "content_filter": "content_filter"}
"""The finish reasons of cut answers: from the Responses API's words to those of Chat Completions."""


def response(reply: Reply, body: Item, body_bytes: int) -> Item:
    """Return the whole response to the request `body`, which was `body_bytes` long."""
    whole = wire.response(reply, body, body_bytes)
    called = (item for item in whole["output"] if item["type"] == "function_call")
    for item, call in zip(called, reply.calls, strict=True):
        if isinstance(call, Call):
            item["arguments"] = call.arguments if isinstance(call.arguments, str) else item["arguments"]
            item["call_id"] = call.call_id or item["call_id"]
    whole["output"] = [*_reasoning_items(reply, body), *whole["output"]]
    if reply.incomplete:
        whole |= {"status": "incomplete", "incomplete_details": {"reason": reply.incomplete}}
        if whole["output"]:
            _cut(whole["output"][-1])
    whole["usage"] = _usage(reply, whole["usage"])
    return whole


def completion(whole: Item) -> Item:
    """Return the response as a chat completion. Reasoning is only counted, as in the real API."""
    translated = chat.completion(whole)
    if cut := whole["incomplete_details"]:
        translated["choices"][0]["finish_reason"] = FINISHED.get(cut["reason"], "length")
    return translated


def item_events(item: Item, index: int) -> Iterator[wire.Event]:
    """Yield the events that stream one output item, which may also be reasoning."""
    if item["type"] != "reasoning":
        yield from wire.item_events(item, index)
        return
    at = {"output_index": index}
    empty = {"summary": [], "status": "in_progress", "encrypted_content": ""}
    yield {"type": "response.output_item.added", **at, "item": {key: empty.get(key, item[key]) for key in item}}
    for number, part in enumerate(item["summary"]):
        here = {"item_id": item["id"], **at, "summary_index": number}
        yield {"type": "response.reasoning_summary_part.added", **here, "part": {**part, "text": ""}}
        for piece in wire.pieces(part["text"]):
            yield {"type": "response.reasoning_summary_text.delta", **here, "delta": piece}
        yield {"type": "response.reasoning_summary_text.done", **here, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **here, "part": part}
    yield {"type": "response.output_item.done", **at, "item": item}


def _reasoning_items(reply: Reply, body: Item) -> Iterator[Item]:
    if reply.reasoning:
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        item = {"id": wire.new_id("rs"), "type": "reasoning", "summary": summary}
        if "reasoning.encrypted_content" in (body.get("include") or ()):
            item["encrypted_content"] = base64.b64encode(reply.reasoning.encode()).decode()
        yield item


def _cut(item: Item) -> None:
    """Cut the item in half, as in an answer that reached its limit."""
    item["status"] = "incomplete"
    holder, key = (item, "arguments") if item["type"] == "function_call" else (item["content"][0], "text")
    holder[key] = holder[key][: len(holder[key]) // 2]


def _usage(reply: Reply, estimated: Item) -> Item:
    """Return the reply's own token counts; if it has none, the estimate with what the reasoning took."""
    thought = len(reply.reasoning) // wire.TOKEN_CHARACTERS
    counts = reply.usage
    if counts is None:
        made = estimated["output_tokens"] + thought
        counts = {"input_tokens": estimated["input_tokens"], "output_tokens": made, "reasoning_tokens": thought}
    given, made = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": counts.get("cached_tokens", 0), "cache_write_tokens": 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": counts.get("reasoning_tokens", 0)},
        "total_tokens": given + made,
    }
