"""The clock: the running time that an agent, or a whole turn, has used and has left."""

from __future__ import annotations

from dataclasses import dataclass

from agents.engine.paths import join
from agents.engine.runtime.recorder import Recorder


@dataclass(frozen=True)
class Clock:
    """The running time of the agent at `path`, limited to `seconds`; "" is the turn itself.

    `outer` is the clock of its caller: when that one has expired, so has this one.
    """

    recorder: Recorder
    path: str
    seconds: float
    outer: Clock | None = None

    def spent(self) -> float:
        """Return the seconds since the agent's first question was recorded; for the turn, since its start."""
        now = self.recorder.services.running_seconds()
        if not self.path:
            return now
        starts = self.recorder.view.at(join(self.path, 1), "action_start")
        return now - float(starts[0].payload.get("ran", 0.0)) if starts else 0.0

    def left(self) -> float:
        """Return the seconds until it expires; 0 or less once it has."""
        own = self.seconds - self.spent()
        return min(own, self.outer.left()) if self.outer else own

    def expired(self) -> float | None:
        """Return the limit that has expired, its own or its caller's, in seconds; None while time is left."""
        return self.limit() if self.left() <= 0 else None

    def limit(self) -> float:
        """Return the limit that expires first, its own or its caller's, in seconds."""
        if self.outer and self.outer.left() < self.seconds - self.spent():
            return self.outer.limit()
        return self.seconds
