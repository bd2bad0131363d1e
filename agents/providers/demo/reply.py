"""The demo model's reply, in its own form: `wire` and `chat` write it in the form of the two APIs."""

from __future__ import annotations

from dataclasses import dataclass

from agents.engine.ledger import JSON


@dataclass(frozen=True)
class Call:
    """A call of a tool, by its wire name."""

    name: str
    arguments: dict[str, JSON]


@dataclass(frozen=True)
class Reply:
    """One answer: its text and its calls. `pause_seconds`: the pause between two events of a stream."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    pause_seconds: float = 0
