"""The reader of a Chat Completions answer, which assembles it from its chunks. It tolerates inexact servers."""

from __future__ import annotations

from agents.engine.interfaces.provider import CUT_BY, Answer
from agents.engine.ledger import JSON
from agents.providers.chat.calls import Calls
from agents.providers.chat.items import REASONING
from agents.providers.common import failures
from agents.providers.common.reasoning import Thoughts, split_unopened
from agents.providers.common.values import as_object, as_objects, as_text, token_counts

CUT = {"length": "length", "max_tokens": "length", "content_filter": "content_filter"}
"""The finish reasons of cut answers, with the engine's words for them. Any other reason means a complete answer."""


class ChatReader:
    """The reader of one answer, see `server.Reader`.

    The answer is complete with its `finish_reason`; token counts come in the same chunk, in a later one, or never.
    """

    def __init__(self) -> None:
        self._finish = ""
        self._model = ""
        self._text: list[str] = []
        self._thoughts = Thoughts()
        self._thought: dict[str, list[str]] = {REASONING: [], "reasoning": []}
        self._calls = Calls()
        self._usage: JSON = None

    @property
    def ended(self) -> bool:
        """Whether the model has finished its answer."""
        return bool(self._finish)

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._text)

    def feed(self, event: JSON) -> str:
        """Add one chunk. Returns the text that it adds. Raises ProviderError if it reports a failure of the model."""
        chunk = as_object(event)
        self._usage = chunk.get("usage") or self._usage
        if self.ended:
            return ""
        self._model = as_text(chunk.get("model")) or self._model
        choice = next(iter(as_objects(chunk.get("choices"))), {})
        if chunk.get("object") == "error" or choice.get("finish_reason") == "error":
            raise failures.reported(choice.get("error") or chunk.get("error") or chunk)
        delta = as_object(choice.get("delta") or choice.get("message"))
        for name, pieces in self._thought.items():
            pieces.append(as_text(delta.get(name)))
        for fragment in as_objects(delta.get("tool_calls")):
            self._calls.feed(fragment)
        self._finish = as_text(choice.get("finish_reason"))
        text = self._thoughts.feed(_words(delta.get("content"))) + as_text(delta.get("refusal"))
        if self._finish:
            text += self._thoughts.end()
        self._text.append(text)
        return text

    def answer(self) -> Answer:
        """Return the complete answer. Raises ProviderError if the stream ended too early or the answer is empty."""
        if not self.ended:
            raise failures.stream_broken("it ended before it was complete.")
        cut = CUT.get(self._finish)
        text, reasoning = split_unopened(self.text)
        calls = self._calls.requests(CUT_BY[cut] if cut else "")
        if not (text.strip() or calls):
            raise failures.cut_while_empty(self._finish) if cut else failures.empty_answer()
        thought = {name: whole for name, pieces in self._thought.items() if (whole := "".join(pieces))}
        return Answer(
            text=text,
            calls=calls,
            usage=token_counts(self._usage, "prompt", "completion"),
            model=self._model,
            finish=cut or "stop",
            items=({"type": REASONING, "text": thought[REASONING]},) if REASONING in thought else (),
            reasoning=next(iter(thought.values()), self._thoughts.thought or reasoning),
        )


def _words(content: JSON) -> str:
    """Return a delta's text. Some servers give it in parts; parts of other kinds are not part of the answer."""
    if isinstance(content, list):
        return "".join(as_text(part.get("text")) for part in as_objects(content) if part.get("type") == "text")
    return as_text(content)
