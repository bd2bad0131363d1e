"""Translation between Chat Completions and the Responses API: the request, the response, and the streamed chunks.

Source: developers.openai.com/api/reference/resources/chat/subresources/completions/streaming-events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agents.engine.ledger import JSON
from agents.providers.demo.situation import texts_of
from agents.providers.demo.wire import pieces

Chunk = dict[str, Any]


def as_responses(body: dict[str, JSON]) -> dict[str, JSON]:
    """Return a valid request in the shape of the Responses API, the only one that scripts read."""
    asked: dict[str, JSON] = {"model": body["model"], "input": [i for m in body["messages"] for i in _items(m)]}
    if body.get("tools"):
        asked["tools"] = [{"type": "function", **tool["function"]} for tool in body["tools"]]
    return asked


def completion(response: dict[str, JSON]) -> dict[str, JSON]:
    """Return the response as a chat completion. Items other than messages and calls are left out."""
    calls = [_call(item) for item in response["output"] if item["type"] == "function_call"]
    said = [part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"]]
    message: Chunk = {"role": "assistant", "content": "".join(said) or None, "refusal": None, "annotations": []}
    if calls:
        message["tool_calls"] = calls
    finished = "tool_calls" if calls else "stop"
    return {
        "id": response["id"].replace("resp_", "chatcmpl-"),
        "object": "chat.completion",
        "created": response["created_at"],
        "model": response["model"],
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finished}],
        "usage": _usage(response["usage"]),
    }


def chunks(whole: dict[str, JSON], body: dict[str, JSON]) -> Iterator[Chunk]:
    """Yield the chunks of the chat completion `whole`: the text, each call, the finish reason, the usage."""
    counted = bool((body.get("stream_options") or {}).get("include_usage"))
    common = {key: value for key, value in whole.items() if key not in ("choices", "usage")}
    common |= {"object": "chat.completion.chunk"} | ({"usage": None} if counted else {})
    choice = whole["choices"][0]
    for delta in _deltas(choice["message"]):
        yield {**common, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]}
    yield {**common, "choices": [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": choice["finish_reason"]}]}
    if counted:
        yield {**common, "choices": [], "usage": whole["usage"]}


def _items(message: dict[str, JSON]) -> Iterator[dict[str, JSON]]:
    """Yield one message as input items: its text, and each of its calls."""
    if message["role"] == "tool":
        output = "\n\n".join(texts_of(message["content"]))
        yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": output}
        return
    if message.get("content"):
        kind = "output_text" if message["role"] == "assistant" else "input_text"
        parts = [{"type": kind, "text": text} for text in texts_of(message["content"])]
        yield {"type": "message", "role": message["role"], "content": parts}
    for call in message.get("tool_calls") or ():
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def _call(item: dict[str, JSON]) -> dict[str, JSON]:
    function = {"name": item["name"], "arguments": item["arguments"]}
    return {"id": item["call_id"], "type": "function", "function": function}


def _deltas(message: dict[str, JSON]) -> Iterator[Chunk]:
    yield {"role": "assistant", "content": "" if message["content"] else None, "refusal": None}
    for piece in pieces(message["content"] or ""):
        yield {"content": piece}
    for index, call in enumerate(message.get("tool_calls", ())):
        begun = {**call, "function": {**call["function"], "arguments": ""}}
        yield {"tool_calls": [{"index": index, **begun}]}
        for piece in pieces(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _usage(counts: dict[str, JSON]) -> dict[str, JSON]:
    return {
        "prompt_tokens": counts["input_tokens"],
        "completion_tokens": counts["output_tokens"],
        "total_tokens": counts["total_tokens"],
        "prompt_tokens_details": counts["input_tokens_details"],
        "completion_tokens_details": counts["output_tokens_details"],
    }
