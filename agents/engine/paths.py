"""Paths: the names of calls. `""` is the turn, `3` its third round, `3/1` the second call in that round's answer.

The gate on a call is one level below it: `3/1/human`. Whatever else people are asked about it stands beside that, at
`3/1/card1`, `3/1/card2`, ...: whether it may run as somebody edited it, and what became of an interrupted attempt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

HUMAN = "human"
"""The key of a gate, and the name of the policy called there, by which a person decides."""

_PROGRESS = "//progress"
"""Keys are never empty."""
_GATE = re.compile(rf"{HUMAN}|card[1-9]\d*")


def parent(path: str) -> str:
    """Return the path of the call that made the call at `path`; for the root, the root itself."""
    return path.rpartition("/")[0]


def join(path: str, key: str | int) -> str:
    """Return the path of the call that `path` makes under this key."""
    return f"{path}/{key}" if path else str(key)


def check_key(key: str) -> None:
    """Raise ValueError for a key that cannot name a call: each is one part of a path, and gates have their own.

    Raises TypeError for what is no text.
    """
    given: object = key
    if not isinstance(given, str):
        raise TypeError(f"the key of a call is a text, not a {type(given).__name__}")
    if not key.strip() or not key.isprintable() or "/" in key or is_gate(key):
        raise ValueError(f"{key!r} cannot be the key of a call: use a text without '/', other than 'human' and 'card1'")


def ancestors(path: str) -> Iterator[str]:
    """Yield `path` and the paths above it, nearest first, ending with the root ("")."""
    while path:
        yield path
        path = parent(path)
    yield ""


def gate(path: str) -> str:
    """Return the path of the gate that asks a person whether the call at `path` may run."""
    return join(path, HUMAN)


def card(path: str, number: int) -> str:
    """Return the path of the card with this number, from 1: what is asked about the call at `path` after its gate."""
    return join(path, f"card{number}")


def progress(path: str) -> str:
    """Return the place of the draft that says how far the policy at `path` is. No call can stand there."""
    return f"{path}{_PROGRESS}"


def is_progress(path: str) -> bool:
    """Whether this is the place of such a draft."""
    return path.endswith(_PROGRESS)


def is_gate(path: str) -> bool:
    """Whether this is the path of a gate or a card."""
    return _GATE.fullmatch(path.rpartition("/")[2]) is not None
