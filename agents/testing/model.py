"""A model that answers from a script."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from agents.engine.interfaces.messages import (
    AssistantMessage,
    CallRequest,
    Message,
    ResultMessage,
    SiteMessage,
    UserMessage,
)
from agents.engine.interfaces.provider import Answer, Request, TextDelta, ToolRequest
from agents.engine.ledger import JSON
from agents.engine.schema import plain_json
from agents.engine.tools.tool import Tool, wire_name

Script: TypeAlias = Sequence[object] | Callable[["Question"], object]
"""The answers of the model in their order, or a function that answers a Question. An answer is a text, a call (see
`asks`), or a list of texts and calls.
"""

_KINDS: tuple[type[Message], ...] = (UserMessage, SiteMessage, AssistantMessage, ResultMessage)


@dataclass(frozen=True)
class Question:
    """What the model was asked in one round: the system text, the names of the tools, and the messages.

    `line` is the site's own, in a turn in which nobody spoke, or that goes on; else "".
    """

    system: str
    tools: tuple[str, ...]
    messages: tuple[Message, ...]
    line: str = ""

    @property
    def results(self) -> list[str]:
        """What the model reads of the results of calls, oldest first."""
        return ["\n\n".join(message.texts) for message in self.messages if isinstance(message, ResultMessage)]


def asks(tool: Tool | str, /, **input: Any) -> ToolRequest:
    """Return a call that the model asks for: of this tool, or of one with this name, with this input."""
    name = tool if isinstance(tool, str) else tool.name
    arguments: Any = plain_json(input)
    return ToolRequest(wire_name(name), arguments)


@dataclass
class ScriptedModel:
    """A provider that answers from a script. Asked the same again, as after a crash, it gives the same answer."""

    script: Script
    asked: list[Question] = field(default_factory=list)
    needs_user: bool = False
    encoding: str = "scripted"
    _answers: dict[str, Answer] = field(default_factory=dict, repr=False)

    def encode(self, messages: Sequence[Message]) -> bytes:
        """Return the messages as JSON, each with its kind."""
        return ",".join(json.dumps([type(each).__name__, asdict(each)]) for each in messages).encode()

    async def ask(self, request: Request) -> AsyncGenerator[TextDelta | Answer, None]:
        """Give the next answer of the script. Raises AssertionError if it has no more."""
        tools = tuple(tool.name for tool in request.tools)
        question = Question(request.system, tools, _messages(request), request.line)
        known = hashlib.sha256(repr(question).encode()).hexdigest()
        if known not in self._answers:
            self._answers[known] = _answer(self._next(question))
            self.asked.append(question)
        answer = self._answers[known]
        if answer.text:
            yield TextDelta(answer.text)
        yield answer

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    def _next(self, question: Question) -> object:
        if callable(self.script):
            return self.script(question)
        number = len(self.asked)
        if number >= len(self.script):
            there_are = f"the script of the model has {len(self.script)} answers, and it was asked once more"
            raise AssertionError(f"{there_are}, after {(question.line, *question.messages)[-1]!r}")
        return self.script[number]


def _answer(said: object) -> Answer:
    parts = said if isinstance(said, list | tuple) else [said]
    texts, calls = [each for each in parts if isinstance(each, str)], [e for e in parts if isinstance(e, ToolRequest)]
    if len(texts) + len(calls) != len(parts):
        raise TypeError(f"an answer of a script is a text, a call made by asks(...), or a list of both, not {said!r}")
    return Answer("\n\n".join(texts), tuple(calls), model="scripted", finish="tool_calls" if calls else "stop")


def _messages(request: Request) -> tuple[Message, ...]:
    listed = json.loads(b"[" + b",".join(chunk for chunk in request.history if chunk) + b"]")
    return tuple(_message(name, fields) for name, fields in listed)


def _message(name: str, fields: dict[str, JSON]) -> Message:
    kind: Any = next(kind for kind in _KINDS if kind.__name__ == name)
    if "calls" in fields:
        fields["calls"] = tuple(CallRequest(**each) for each in fields["calls"])
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()})  # type: ignore[no-any-return]
