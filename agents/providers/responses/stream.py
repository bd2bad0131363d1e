"""The reader of a Responses answer, which assembles it from its events.

It tolerates inexact servers, which leave out events, indexes or the output of the last event. The output of the last
event is used if it is there; otherwise the finished items; otherwise the pieces.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from agents.engine.interfaces.provider import CUT_BY, Answer, ToolRequest
from agents.engine.ledger import JSON
from agents.providers.common import failures
from agents.providers.common.reasoning import Thoughts, split_reasoning
from agents.providers.common.values import (
    BETWEEN,
    arguments_text,
    as_count,
    as_object,
    as_objects,
    as_text,
    cut_short,
    parse_arguments,
    token_counts,
)

NOT_WHOLE = ("incomplete", "failed", "cancelled")
"""The statuses of a response that is not a complete answer."""


@dataclass(eq=False)
class _Item:
    """An output item that is being assembled: as announced or finished, and the pieces of its content."""

    value: dict[str, JSON] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    summary: dict[int, str] = field(default_factory=dict)
    thought: list[str] = field(default_factory=list)
    thoughts: Thoughts = field(default_factory=Thoughts)
    finished: bool = False

    def whole(self) -> dict[str, JSON]:
        if self.finished:
            return self.value
        if self.arguments:
            return {**self.value, "type": "function_call", "arguments": "".join(self.arguments)}
        if self.text:
            return {**self.value, "type": "message", "content": [{"type": "output_text", "text": "".join(self.text)}]}
        if self.summary or self.thought:
            summary = [{"type": "summary_text", "text": text} for text in self.summary.values()]
            content = [{"type": "reasoning_text", "text": "".join(self.thought)}] if self.thought else []
            return {**self.value, "type": "reasoning", "summary": summary, "content": content}
        return self.value


class ResponsesReader:
    """The reader of one answer, see `server.Reader`."""

    def __init__(self) -> None:
        self.ended = False
        self._response: dict[str, JSON] = {}
        self._items: dict[int | str, _Item] = {}
        self._speaking: _Item | None = None
        self._between = ""
        self._begun = False

    def feed(self, event: JSON) -> str:
        """Add one event. Returns the text that it adds. Raises ProviderError if it reports a failure of the model."""
        if self.ended or not isinstance(event, dict):
            return ""
        kind, delta = event.get("type"), as_text(event.get("delta"))
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                return self._say(self._item(event), delta)
            case "response.function_call_arguments.delta":
                self._item(event).arguments.append(delta)
            case "response.reasoning_summary_text.delta":
                part, index = self._item(event).summary, as_count(event.get("summary_index"))
                part[index] = part.get(index, "") + delta
            case "response.reasoning_text.delta":
                self._item(event).thought.append(delta)
            case "response.output_item.added" | "response.output_item.done":
                item = self._item(event)
                item.value, item.finished = as_object(event.get("item")), kind == "response.output_item.done"
            case "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled":
                self._end(as_object(event.get("response")), kind.removeprefix("response."))
                return self._let_go()
            case "error":
                raise failures.reported(event)
        return ""

    def _end(self, response: dict[str, JSON], status: str) -> None:
        """Add the last event. The status of the response overrides the event's name: vLLM ends a cut answer with
        `response.completed`, in which the status is `incomplete`."""
        if (own := response.get("status")) in NOT_WHOLE:
            status = own
        if status in {"failed", "cancelled"}:
            raise failures.reported(response.get("error"))
        self._response, self.ended = {**response, "status": status}, True

    def answer(self) -> Answer:
        """Return the complete answer. Raises ProviderError if the stream ended too early or the answer is empty."""
        if not self.ended:
            raise failures.stream_broken("it ended before it was complete.")
        cut = self._response["status"] == "incomplete"
        reason = as_text(as_object(self._response.get("incomplete_details")).get("reason"))
        finish = ("content_filter" if reason == "content_filter" else "length") if cut else "stop"
        output = as_objects(self._response.get("output")) or [item.whole() for item in self._items.values()]
        last = output[-1] if output else {}
        output = [item for item in output if not (cut and item.get("type") == "function_call" and not item.get("name"))]
        texts = [_text_and_reasoning(item) for item in output]
        text = BETWEEN.join(said for said, _ in texts if said)
        calls = tuple(
            _half_call(item, CUT_BY[finish]) if cut and (item is last or _unfinished(item)) else _call(item)
            for item in output
            if item.get("type") == "function_call"
        )
        if not (text.strip() or calls):
            raise failures.cut_while_empty(reason) if cut else failures.empty_answer()
        return Answer(
            text=text,
            calls=calls,
            usage=token_counts(self._response.get("usage"), "input", "output"),
            model=as_text(self._response.get("model")),
            finish=finish,
            items=_opaque(output),
            reasoning=BETWEEN.join(thought for _, thought in texts if thought),
        )

    def _item(self, event: dict[str, JSON]) -> _Item:
        """Return the item that an event is about: by its index, or by its id if the server gives no index."""
        key = event.get("output_index")
        if not isinstance(key, int):
            key = as_text(event.get("item_id")) or as_text(as_object(event.get("item")).get("id"))
        return self._items.setdefault(key, _Item())

    def _say(self, item: _Item, delta: str) -> str:
        before = "" if self._speaking is item else self._let_go()
        self._speaking = item
        item.text.append(delta)
        return before + self._tell(item.thoughts.feed(delta))

    def _let_go(self) -> str:
        """End the current text and return what was held back of it. The next text is separated from it."""
        rest = self._tell(self._speaking.thoughts.end()) if self._speaking else ""
        self._between = BETWEEN if self._begun else ""
        return rest

    def _tell(self, text: str) -> str:
        if not text:
            return ""
        between, self._between, self._begun = self._between, "", True
        return between + text


def _call(item: dict[str, JSON]) -> ToolRequest:
    arguments, raw = parse_arguments(item.get("arguments"))
    call_id = as_text(item.get("call_id")) or as_text(item.get("id"))
    return ToolRequest(as_text(item.get("name")), arguments, call_id, raw)


def _half_call(item: dict[str, JSON], cut: str) -> ToolRequest:
    arguments = item.get("arguments")
    written = arguments_text(arguments) if isinstance(arguments, dict) else as_text(arguments)
    return cut_short(_call(item), written, cut)


def _unfinished(item: dict[str, JSON]) -> bool:
    """Return whether a cut answer was cut inside this call. Not reliable for the last call: vLLM marks every item as
    completed."""
    return item.get("status") != "completed"


def _text_and_reasoning(item: dict[str, JSON]) -> tuple[str, str]:
    """Return an item's text and its reasoning: the summary or, for an open model, all of it."""
    if item.get("type") == "message":
        parts = as_objects(item.get("content"))
        return split_reasoning("".join(as_text(part.get("text")) or as_text(part.get("refusal")) for part in parts))
    if item.get("type") == "reasoning":
        parts = as_objects(item.get("summary")) or as_objects(item.get("content"))
        return "", BETWEEN.join(filter(None, (as_text(part.get("text")) for part in parts)))
    return "", ""


def _opaque(output: list[dict[str, JSON]]) -> tuple[JSON, ...]:
    """Return the reasoning, with placeholders for the message and the calls: the API wants them back in this order.

    Empty if there is neither reasoning nor a message's `phase`, which the API wants back, too.
    """
    if not any(item.get("type") == "reasoning" or item.get("phase") for item in output):
        return ()
    return tuple(_place(item) for item in output if item.get("type") in {"reasoning", "message", "function_call"})


def _place(item: dict[str, JSON]) -> dict[str, JSON]:
    if item["type"] == "reasoning":
        return item
    return {key: item[key] for key in ("type", "phase") if item.get(key) is not None}
