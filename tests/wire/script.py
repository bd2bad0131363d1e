"""Scripts for the wire server: replies, and what chooses one for a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agents.engine.interfaces.provider import ToolRequest
from agents.engine.ledger import JSON, digest
from agents.providers.demo import reply as demo
from agents.providers.demo.situation import is_from_person, items, text_of


@dataclass(frozen=True)
class Call(ToolRequest):
    """A call of a tool, by its wire name. Arguments given as text are sent unchanged, even if they are not JSON.

    Without `call_id` it gets a unique one.
    """

    arguments: JSON = field(default_factory=dict)
    call_id: str = ""


@dataclass(frozen=True)
class Refusal:
    """An HTTP error instead of an answer, in the API's shape. `headers` may hold Retry-After."""

    status: int
    code: str = ""
    message: str = "Scripted."
    headers: dict[str, str] = field(default_factory=dict)
    param: str = ""


@dataclass(frozen=True)
class Reply(demo.Reply):
    """One answer of the server, with all that a real server may do to it. `Reply()` is an empty answer."""

    reasoning: str = ""
    """A summary of the model's reasoning; it becomes a reasoning item before all others."""
    usage: dict[str, int] | None = None
    """Token counts under the engine's names (`input_tokens`, ...); None estimates them from the lengths."""
    incomplete: str = ""
    """Why the answer is cut, such as `max_output_tokens`: its last item is unfinished."""
    refusal: Refusal | None = None
    delay_seconds: float = 0
    """The delay before the first byte."""
    break_after: int | str | None = None
    """Ends the stream early: after this number of events, or after the first event of this type."""
    break_how: Literal["cut", "end"] = "cut"
    """`cut` drops the connection, `end` finishes the HTTP response as if it were complete."""
    events: tuple[JSON, ...] | None = None
    """The exact events of the stream; bytes are sent unchanged. Text and calls are then ignored."""

    @classmethod
    def of(cls, reply: demo.Reply) -> Reply:
        """Return a reply of the demo model as one of this server."""
        return reply if isinstance(reply, cls) else cls(reply.text, reply.calls, reply.pause_seconds)


Script = Callable[[dict[str, JSON]], demo.Reply]
"""Chooses the reply to the body of a valid request."""

END = Reply(refusal=Refusal(400, "script_ended", "The script has no reply left."))


class InOrder:
    """A script that gives the replies one after another, whatever is asked."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._left = iter(tuple(replies))

    def __call__(self, body: dict[str, JSON]) -> Reply:
        """Return the next reply; after the last, a refusal that says so."""
        return next(self._left, END)


class ByRound:
    """A script that chooses the reply by the number of finished rounds, so that a repeated request gets the same reply.

    `turns` gives the rounds of a turn by what the user said; "*" stands for everything else. A round is a reply, or a
    list of replies for successive requests of that round, of which the last is repeated.
    """

    def __init__(self, turns: Mapping[str, Sequence[Reply | Sequence[Reply]]]) -> None:
        self._turns = turns
        self._asked: dict[str, int] = {}

    def __call__(self, body: dict[str, JSON]) -> Reply:
        """Return the reply of the requested round; after the last, a refusal that says so."""
        rounds = self._turns.get(last_user_text(body)) or self._turns.get("*", ())
        number = finished_rounds(body)
        if number >= len(rounds):
            return END
        reply = rounds[number]
        return reply if isinstance(reply, Reply) else reply[min(self._attempt(body), len(reply) - 1)]

    def _attempt(self, body: dict[str, JSON]) -> int:
        """Return how often this exact history was sent before."""
        key = digest(body["input"])
        self._asked[key] = self._asked.get(key, -1) + 1
        return self._asked[key]


def script_from_json(value: JSON) -> ByRound:
    """Return a ByRound from JSON: a list of rounds, or an object of such lists by user text.

    Raises ValueError or TypeError for any other shape.
    """
    turns = value if isinstance(value, dict) else {"*": value}
    return ByRound({said: [_round(each) for each in _list(rounds)] for said, rounds in turns.items()})


def _round(value: JSON) -> Reply | list[Reply]:
    return [_reply(each) for each in value] if isinstance(value, list) else _reply(value)


def _reply(value: dict[str, JSON]) -> Reply:
    given = dict(value)
    given["calls"] = tuple(Call(**call) for call in given.get("calls", ()))
    if given.get("refusal"):
        given["refusal"] = Refusal(**given["refusal"])
    return Reply(**given)


def _list(value: JSON) -> list[JSON]:
    if not isinstance(value, list):
        raise TypeError(f"a turn of a script must be a list of replies, not {value!r}")
    return value


def last_user_text(body: dict[str, JSON]) -> str:
    """Return what the user said last; "" if nobody said anything."""
    return next((text_of(item) for item in reversed(items(body)) if is_from_person(item)), "")


def finished_rounds(body: dict[str, JSON]) -> int:
    """Return how many batches of calls got their results since the user's last message."""
    count, before = 0, ""
    for item in items(body):
        kind = item.get("type", "message")
        if is_from_person(item):
            count = 0
        elif kind == "function_call_output" != before:
            count += 1
        before = kind
    return count
