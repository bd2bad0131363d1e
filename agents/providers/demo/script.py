"""What a scripted server answers: replies, and the scripts that choose one for a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from agents.engine.agent.projection import GO_ON, NOBODY_SPOKE
from agents.engine.ledger import JSON, digest


@dataclass(frozen=True)
class Call:
    """A call of a tool, by its wire name. Arguments given as text are sent as they are, JSON or not.

    Without `call_id` it gets one that no other call has.
    """

    name: str
    arguments: dict[str, JSON] | str = field(default_factory=dict)
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
class Reply:
    """One answer of the server. `Reply()` is an answer that says nothing."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    reasoning: str = ""
    """A summary of what the model thought; makes a reasoning item before all else."""
    usage: dict[str, int] | None = None
    """Counts under the engine's names (`input_tokens`, ...); None has them made up from the lengths."""
    incomplete: str = ""
    """Why the answer is cut, such as `max_output_tokens`: its last item is unfinished."""
    refusal: Refusal | None = None
    delay_seconds: float = 0
    """Before the first byte."""
    pause_seconds: float = 0
    """Between two events of a stream."""
    break_after: int | str | None = None
    """Ends the stream early: after so many events, or after the first of this type."""
    break_how: Literal["cut", "end"] = "cut"
    """`cut` drops the connection, `end` finishes the HTTP response as if all had been said."""
    events: tuple[JSON, ...] | None = None
    """The events of the stream, exactly, bytes among them as they are; text and calls are then not looked at."""


UNSAID = (GO_ON, NOBODY_SPOKE)
"""What the engine says where no person did."""

Script = Callable[[dict[str, JSON]], Reply]
"""Chooses the reply to a request's body, which has been found valid."""

END = Reply(refusal=Refusal(400, "script_ended", "The script has no reply left."))


class InOrder:
    """The replies one after another, whatever is asked."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._left = iter(tuple(replies))

    def __call__(self, body: dict[str, JSON]) -> Reply:
        """The next reply; after the last, a refusal that says so."""
        return next(self._left, END)


class ByRound:
    """The reply is chosen by how many rounds the turn has behind it, so that a repeated request gets the same again.

    `turns` gives the rounds of a turn by what the user said; "*" stands for everything else. A round is a reply, or a
    list of them for request after request of that round: the last is then repeated.
    """

    def __init__(self, turns: Mapping[str, Sequence[Reply | Sequence[Reply]]]) -> None:
        self._turns = turns
        self._asked: dict[str, int] = {}

    def __call__(self, body: dict[str, JSON]) -> Reply:
        """The reply of the round that is asked for; after the last, a refusal that says so."""
        rounds = self._turns.get(last_user_text(body)) or self._turns.get("*", ())
        number = finished_rounds(body)
        if number >= len(rounds):
            return END
        reply = rounds[number]
        return reply if isinstance(reply, Reply) else reply[min(self._attempt(body), len(reply) - 1)]

    def _attempt(self, body: dict[str, JSON]) -> int:
        """How often this very history was asked about before."""
        key = digest(body["input"])
        self._asked[key] = self._asked.get(key, -1) + 1
        return self._asked[key]


def script_from_json(value: JSON) -> ByRound:
    """A ByRound from JSON: a list of rounds, or an object of such lists by user text. Raises ValueError, TypeError."""
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
        raise TypeError(f"a script's turn is a list of replies, not {value!r}")
    return value


def items(body: dict[str, JSON]) -> list[dict[str, JSON]]:
    """A request's input items; an input that is only text is one message of the user."""
    given = body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def spoke(item: dict[str, JSON]) -> bool:
    """Whether the user said something in this item, and nothing stands in the place of that."""
    return item.get("role") == "user" and text_of(item) not in UNSAID


def last_user_text(body: dict[str, JSON]) -> str:
    """What the user said last; "" where nobody said anything."""
    return next((text_of(item) for item in reversed(items(body)) if spoke(item)), "")


def text_of(message: dict[str, JSON]) -> str:
    """A message's text; of one that files came with what was said, which stands before what tells of them."""
    content = message["content"]
    return content if isinstance(content, str) else next((part.get("text", "") for part in content), "")


def finished_rounds(body: dict[str, JSON]) -> int:
    """How many batches of calls have had their results since the user last spoke."""
    count, before = 0, ""
    for item in items(body):
        kind = item.get("type", "message")
        if spoke(item):
            count = 0
        elif kind == "function_call_output" != before:
            count += 1
        before = kind
    return count
