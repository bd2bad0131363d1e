"""An answer of the Responses API, put together from its events.

Lenient: servers that speak the protocol roughly leave out events, indexes or the output of the last event.
What the last event says counts; else the finished items; else the pieces.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field

from agents.engine.errors import ProviderError
from agents.engine.ledger import JSON
from agents.engine.provider import Answer, ToolRequest
from agents.providers import failures

BETWEEN_MESSAGES = "\n\n"
"""Stands between two messages of one answer."""


@dataclass(eq=False)
class _Item:
    """An output item in the making: as it was announced or finished, and the pieces of its text or arguments."""

    value: dict[str, JSON] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    finished: bool = False

    def whole(self) -> dict[str, JSON]:
        if self.finished:
            return self.value
        if self.arguments:
            return {**self.value, "type": "function_call", "arguments": "".join(self.arguments)}
        if self.text:
            return {**self.value, "type": "message", "content": [{"type": "output_text", "text": "".join(self.text)}]}
        return self.value


class Reader:
    """Takes the events of one answer, then gives the answer."""

    def __init__(self) -> None:
        self.ended = False
        self._response: dict[str, JSON] = {}
        self._items: dict[int | str, _Item] = {}
        self._speaking: _Item | None = None

    def feed(self, event: JSON) -> str:
        """Take one event; returns the text it adds. Raises ProviderError where it says that the model failed."""
        kind = event.get("type") if isinstance(event, dict) else None
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                return self._say(self._item(event), _text(event.get("delta")))
            case "response.function_call_arguments.delta":
                self._item(event).arguments.append(_text(event.get("delta")))
            case "response.output_item.added" | "response.output_item.done":
                item = self._item(event)
                item.value, item.finished = _object(event.get("item")), kind == "response.output_item.done"
            case "response.completed" | "response.incomplete":
                self._response, self.ended = _object(event.get("response")), True
                self._response["status"] = kind.removeprefix("response.")
            case "response.failed":
                raise failures.told(_object(event.get("response")).get("error"))
            case "error":
                raise failures.told(event)
        return ""

    def answer(self) -> Answer:
        """The whole answer. Raises ProviderError where the stream ended too early or nothing was said."""
        if not self.ended:
            raise failures.stream_broken("it ended before it was complete.")
        cut = self._response["status"] == "incomplete"
        reason = _text(_object(self._response.get("incomplete_details")).get("reason"))
        output = [item for item in self._output() if not (cut and _is_half_a_call(item))]
        text = BETWEEN_MESSAGES.join(filter(None, map(_message_text, output)))
        calls = tuple(_call(item) for item in output if item.get("type") == "function_call")
        if not (text.strip() or calls):
            raise _nothing_said(reason) if cut else _nothing()
        return Answer(
            text=text,
            calls=calls,
            usage=_usage(self._response.get("usage")),
            model=_text(self._response.get("model")),
            finish=("content_filter" if reason == "content_filter" else "length") if cut else "stop",
            items=_opaque(output),
        )

    def _output(self) -> list[dict[str, JSON]]:
        whole = self._response.get("output")
        return [_object(item) for item in whole] if whole else [item.whole() for item in self._items.values()]

    def _item(self, event: dict[str, JSON]) -> _Item:
        """The item that an event is about: by its index, or by its id where a server gives no index."""
        key = event.get("output_index")
        if not isinstance(key, int):
            key = _text(event.get("item_id")) or _text(_object(event.get("item")).get("id"))
        return self._items.setdefault(key, _Item())

    def _say(self, item: _Item, delta: str) -> str:
        first = self._speaking is None or self._speaking is item
        self._speaking = item
        item.text.append(delta)
        return delta if first else BETWEEN_MESSAGES + delta


def parse_arguments(value: JSON) -> tuple[dict[str, JSON], str | None]:
    """A call's arguments as (object, None), or as ({}, their text) where they are no JSON object. Blank means none."""
    if isinstance(value, dict):  # some servers do not wrap it in a string
        return value, None
    text = _text(value)
    if not text.strip():
        return {}, None
    try:
        parsed = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        return {}, text
    return (parsed, None) if isinstance(parsed, dict) else ({}, text)


def _finite(text: str) -> float:
    """A number that JSON can say again: NaN, Infinity and 1e999 are none."""
    if not math.isfinite(number := float(text)):
        raise ValueError(text)
    return number


def _call(item: dict[str, JSON]) -> ToolRequest:
    arguments, raw = parse_arguments(item.get("arguments"))
    return ToolRequest(_text(item.get("name")), arguments, _text(item.get("call_id")) or _text(item.get("id")), raw)


def _is_half_a_call(item: dict[str, JSON]) -> bool:
    """Whether a cut answer was cut inside this call: what stands there was never meant to run."""
    return item.get("type") == "function_call" and item.get("status") != "completed"


def _message_text(item: dict[str, JSON]) -> str:
    if item.get("type") != "message":
        return ""
    parts = [_object(part) for part in item.get("content") or ()]
    return "".join(_text(part.get("text")) or _text(part.get("refusal")) for part in parts)


def _opaque(output: list[dict[str, JSON]]) -> tuple[JSON, ...]:
    """The reasoning, and between it where the message and the calls stood: the API wants them back in this order.

    Nothing where there is neither reasoning nor a message's `phase`, which the API wants back too.
    """
    if not any(item.get("type") == "reasoning" or item.get("phase") for item in output):
        return ()
    return tuple(_place(item) for item in output if item.get("type") in {"reasoning", "message", "function_call"})


def _place(item: dict[str, JSON]) -> dict[str, JSON]:
    if item["type"] == "reasoning":
        return item
    return {key: item[key] for key in ("type", "phase") if item.get(key) is not None}


def _usage(usage: JSON) -> dict[str, int]:
    """The API's counts under our names; empty where the server counts nothing."""
    if not isinstance(usage, dict):
        return {}
    given, made = _object(usage.get("input_tokens_details")), _object(usage.get("output_tokens_details"))
    return {
        "input_tokens": _count(usage.get("input_tokens")),
        "cached_tokens": _count(given.get("cached_tokens")),
        "output_tokens": _count(usage.get("output_tokens")),
        "reasoning_tokens": _count(made.get("reasoning_tokens")),
    }


def _nothing() -> ProviderError:
    return ProviderError("The model answered nothing.", code="empty_answer", retryable=True)


def _nothing_said(reason: str) -> ProviderError:
    return ProviderError(f"The answer was cut before it said anything: {reason or 'no reason'}.", code="incomplete")


def _object(value: JSON) -> dict[str, JSON]:
    return value if isinstance(value, dict) else {}


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""


def _count(value: JSON) -> int:
    return value if isinstance(value, int) else 0
