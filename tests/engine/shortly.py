"""The short way in programs of policies: what a policy may do in one line, and the model that its agents ask."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID
from zlib import crc32

from pydantic import BaseModel, field_validator

from agents.engine import Context
from agents.engine.interfaces.messages import UserMessage
from agents.engine.interfaces.provider import Answer, Request
from agents.engine.ledger import JSON
from agents.engine.outputs.kinds import WidgetOutput
from tests.engine.support import answers_in, call, says, seen

VALUES = ("now", "uuid", "random")
WAYS = (
    *("look", "once", "gated", "missing"),
    *("agent", "agent with tools", "agent with a form"),
    *("ask", "choose", "fill in", "approve"),
    *("show", "file", *VALUES),
)
CHOICES = ("red", "blue", "green")


@dataclass(frozen=True)
class Short:
    """Do one of WAYS, shortly."""

    way: str
    key: str | None = None


class Filled(BaseModel):
    """What is the word?"""

    word: str

    @field_validator("word")
    @classmethod
    def in_order(cls, word: str) -> str:
        if word in ("edit", "reject"):
            raise ValueError(f"{word} is not in order")
        return word


Made = Coroutine[Any, Any, Any]
_MADE: dict[str, Callable[[Context, str, str | None], Made]] = {
    "agent": lambda ctx, words, key: ctx.agent(words, key=key),
    "agent with tools": lambda ctx, words, key: ctx.agent(words, tools=["look"], rounds=3, key=key),
    "agent with a form": lambda ctx, words, key: ctx.agent(words, output=Filled, key=key),
    "ask": lambda ctx, words, key: ctx.ask(f"What about {words}?", key=key),
    "choose": lambda ctx, words, key: ctx.ask(f"Which of {words}?", choices=CHOICES, key=key),
    "fill in": lambda ctx, words, key: ctx.ask(Filled, key=key),
    "approve": lambda ctx, words, key: ctx.approve("Go on?", f"About {words}.", key=key),
    "show": lambda ctx, words, key: ctx.show(_widget(words), key=key),
    "file": lambda ctx, words, key: ctx.file("a.txt", words.encode(), media_type="text/plain", summary=words, key=key),
    "now": lambda ctx, words, key: ctx.now(key=key),
    "uuid": lambda ctx, words, key: ctx.uuid(key=key),
    "random": lambda ctx, words, key: ctx.random(key=key),
}


def make(act: Short, ctx: Context, words: str, key: str | None) -> Made:
    """The call, which depends on what the policy has heard: its `words`."""
    if act.way in _MADE:
        return _MADE[act.way](ctx, words, key)
    return ctx.tool(act.way, name=words, key=key)


def _widget(words: str) -> WidgetOutput:
    return WidgetOutput(widget="table", data={"words": words}, fallback=words)


def plain(value: object) -> JSON:
    """What a policy hears of a value, as it stands in the record."""
    if isinstance(value, datetime):
        return value.isoformat()
    return value.model_dump() if isinstance(value, BaseModel) else str(value) if isinstance(value, UUID) else value


def answered(asked: dict[str, JSON], said: str, chance: int) -> JSON:
    """What a person answers who would say this; the second time something that is in order."""
    if "schema" in asked:
        return {"word": "fine" if "draft" in asked else said}
    return CHOICES[chance % len(CHOICES)] if "choices" in asked else said


def model_script(request: Request) -> Answer:
    """What the model of the agents answers: it calls a tool, which may wait for people, and then says something.

    Where its answer has a form, it gets that wrong twice: in words, and as one that does not fit.
    """
    told = next(message.text for message in seen(request) if isinstance(message, UserMessage))
    chance, number = crc32(told.encode()), answers_in(request)
    names = [tool.name for tool in request.tools if tool.name != "final_answer"]
    if number == 0:
        return says("I look.", call(names[chance % len(names)], name=told[:12]))
    if not any(tool.name == "final_answer" for tool in request.tools):
        return says(f"It is {told[:6]}.")
    wrong = [says("In words."), says("", call("final_answer", word="edit"))]
    return wrong[number - 1] if number <= chance % 3 else says("", call("final_answer", word=told[:6]))
