"""Paths: how calls are named. `""` is the turn, `3` its third round, `3/1` that answer's second call.

A gate stands one step below the call that it holds: `3/1/human`. So does the card that asks what became of an attempt
that was interrupted: `3/1/card1` after the first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

HUMAN = "human"
"""The key of a gate, and the name of the policy that is called there: a person decides."""

_GATE = re.compile(rf"{HUMAN}|card[1-9]\d*")


def parent(path: str) -> str:
    """The path of the call that made the call at `path`; the root's own path for the root."""
    return path.rpartition("/")[0]


def join(path: str, key: str | int) -> str:
    """The path of the call that the call at `path` makes under this key."""
    return f"{path}/{key}" if path else str(key)


def ancestors(path: str) -> Iterator[str]:
    """`path` and the paths above it, nearest first; the root ("") last."""
    while path:
        yield path
        path = parent(path)
    yield ""


def gate(path: str) -> str:
    """Where a person is asked whether the call at `path` may run."""
    return join(path, HUMAN)


def card(path: str, attempt: int) -> str:
    """Where the owner is asked what became of this attempt of the call at `path`; attempts count from 1."""
    return join(path, f"card{attempt}")


def is_gate(path: str) -> bool:
    """Whether a gate or a card may stand at this path."""
    return _GATE.fullmatch(path.rpartition("/")[2]) is not None
