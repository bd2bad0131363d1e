"""What a payload is without its content: what the fold and the rules need stays, all else says "[redacted]".

What stays is named, step type by step type; whatever is not named is content. No database: a ledger in a file is
checked with this too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Protocol

from agents.engine.ledger import JSON, canonical
from agents.engine.outputs.registry import BUILT_IN, find_kind
from agents.engine.paths import HUMAN

PLACEHOLDER = "[redacted]"
"""What stands in the place of a text."""
MARK = "redacted"
"""A payload with this key, which is true, was redacted."""

STAYS: Mapping[str, frozenset[str]] = {
    "action_call": frozenset({"policy", "call_id", "terminate", "tool", "decorated", "origin", "code_version"}),
    "action_start": frozenset({"attempt", "digest", "fence", "snapshot", "history", "tier", "reason"}),
    "action_retry": frozenset({"attempt", "code", "wait_seconds"}),
    "action_deferred": frozenset(),
    "action_result": frozenset(
        {
            "error", "code", "usage", "model", "finish", "cost_nano_usd", "decision", "via", "digest", "remember",
            "state", "stop_reason", "returns",
        }
    ),
    "state": frozenset({"plugin"}),
    "pause": frozenset({"pending_action_count", "steps_used", "steps_remaining"}),
    "resume": frozenset({"resumed_reason", "steps_remaining"}),
    "cancel": frozenset(),
    "note": frozenset({"code"}),
}  # fmt: skip
"""What stays of the payload of each step of the record itself. Of an output stays what its kind says, else nothing."""
ASKED_STAYS: Mapping[str, frozenset[str]] = {
    "": frozenset({"tier", "continues", "repeats"}),
    "model": frozenset({"round"}),
    HUMAN: frozenset({"ask", "tool", "risk", "digest", "who", "expires_at"}),
}
"""What stays of what a call asks for: of the turn's own (""), of a round, of a gate. Of a tool's input nothing does."""
FILE_STAYS = frozenset({"id", "size"})
COPY_LEAST = 8
"""Characters of a text from which on it is looked for in other steps: a shorter one stands everywhere."""
_PIECE, _STRIDE = 5, 4
"""Of COPY_LEAST characters that stand anywhere in a text, one whole piece begins at a multiple of the stride."""
EMPTY = frozenset({"value", "items", "data"})
"""Content of which nothing may be left, not even a word that says so: whoever reads it would take that for theirs."""


class Recorded(Protocol):
    """A step as a ledger keeps it."""

    @property
    def actor(self) -> str:
        """Who did it."""
        ...

    @property
    def path(self) -> str:
        """The call it belongs to."""
        ...

    @property
    def type(self) -> str:
        """What kind of step it is."""
        ...

    @property
    def payload(self) -> str:
        """Canonical JSON."""
        ...


def redacted(step: Recorded) -> str:
    """The payload of this step without its content, as canonical JSON. Once redacted, it stays as it is."""
    try:
        payload = json.loads(step.payload)
    except ValueError:
        payload = None
    if not isinstance(payload, dict):
        return canonical({MARK: True})
    stays = _stays(step.type)
    left = {name: value if name in stays else _without(name, value) for name, value in _unmarked(payload)}
    if step.type == "action_call" and isinstance(asked := payload.get("payload"), dict):
        left["payload"] = _asked(step, str(payload.get("policy")), asked)
    return canonical(left | {MARK: True})


def still_has_content(step: Recorded) -> bool:
    """Whether a step that was redacted holds content all the same.

    Of a kind from outside only its app knew what stays, and that app may be gone or have changed since: of such a step
    no more is asked than that it says that it was redacted.
    """
    if step.type in STAYS or step.type in BUILT_IN:
        return redacted(step) != step.payload
    return not is_redacted(step.payload)


def has_content(step: Recorded) -> bool:
    """Whether there is something in this step to be redacted."""
    payload = json.loads(step.payload)
    return not payload.get(MARK) and json.loads(redacted(step)) != payload | {MARK: True}


def is_redacted(payload: str) -> bool:
    """Whether this payload says that its content was taken out."""
    return f'"{MARK}":true' in payload and json.loads(payload).get(MARK) is True


def sha256(payload: str) -> str:
    """By which a payload that was taken out is known, and checked against the chain."""
    return hashlib.sha256(payload.encode()).hexdigest()


def texts(value: JSON) -> Iterator[str]:
    """The texts in a payload, its keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)


def contains_any(searched: Set[str]) -> Callable[[str], bool]:
    """A function that says whether a text holds one of these, each of COPY_LEAST characters or more.

    Pieces of theirs are looked up at every few characters of the text: thousands take hardly longer than one.
    """
    pieces: dict[str, set[str]] = {}
    for each in searched:
        for at in range(_STRIDE):
            pieces.setdefault(each[at : at + _PIECE], set()).add(each)

    def holds(text: str) -> bool:
        found = pieces.keys() & {text[at : at + _PIECE] for at in range(0, len(text), _STRIDE)}
        return any(each in text for each in set[str]().union(*(pieces[piece] for piece in found)))

    return holds


def _stays(type: str) -> frozenset[str]:
    if type in STAYS:
        return STAYS[type]
    kind = find_kind(type)
    return kind.stays if kind else frozenset()


def _unmarked(payload: dict[str, JSON]) -> Iterator[tuple[str, JSON]]:
    return ((name, value) for name, value in payload.items() if name != MARK)


def _asked(step: Recorded, policy: str, asked: dict[str, JSON]) -> dict[str, JSON]:
    """What a call asks for, without its content. What a model asks for is its own words, whatever it calls."""
    stays = ASKED_STAYS.get(policy if step.path else "")
    if stays is None or (step.path and step.actor != "runtime"):
        return _emptied() if asked else {}
    left = {name: value if name in stays else _without(name, value) for name, value in asked.items()}
    if isinstance(schema := asked.get("schema"), str) and len(schema) == 64:  # its digest
        left["schema"] = schema
    if not step.path and isinstance(files := asked.get("files"), list):
        left["files"] = [_file(file) for file in files]
    return left


def _file(file: JSON) -> JSON:
    """A file that was given with a message."""
    if not isinstance(file, dict):
        return _without("", file)
    return {name: value if name in FILE_STAYS else _without(name, value) for name, value in file.items()}


def _without(name: str, value: JSON) -> JSON:
    """A value of the same kind that says nothing."""
    if isinstance(value, str):
        return PLACEHOLDER if value else ""
    if isinstance(value, bool) or value is None:
        return value if value is None else False
    if isinstance(value, int | float):
        return 0
    if isinstance(value, list):
        return [PLACEHOLDER] if value and name not in EMPTY else []
    if name == "change":
        return {
            "path": PLACEHOLDER,
            "before": None if value.get("before") is None else PLACEHOLDER,
            "after": PLACEHOLDER,
        }
    return _emptied() if value and name not in EMPTY else {}


def _emptied() -> dict[str, JSON]:
    """A JSON object that says that one stood here."""
    return {MARK: PLACEHOLDER}
