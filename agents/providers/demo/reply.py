"""The demo model's reply, in its own form: `wire` and `chat` write it in the form of the two APIs."""

from __future__ import annotations

from dataclasses import dataclass

from agents.engine.interfaces.provider import ToolRequest


@dataclass(frozen=True)
class Reply:
    """One answer: its text and its calls. `pause_seconds`: the pause between two events of a stream."""

    text: str = ""
    calls: tuple[ToolRequest, ...] = ()
    pause_seconds: float = 0
