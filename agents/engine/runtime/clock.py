"""The running time of an agent, or of a whole turn: what it has used, and what is left."""

from __future__ import annotations

from dataclasses import dataclass

from agents.engine.paths import join
from agents.engine.runtime.recorder import Recorder


@dataclass(frozen=True)
class Clock:
    """What the agent at `path` may use, in `seconds` of running time; "" is the turn itself.

    `outer` is the clock of what called it: when that is up, so is this one.
    """

    recorder: Recorder
    path: str
    seconds: float
    outer: Clock | None = None

    def spent(self) -> float:
        """Seconds since the first question of the agent was recorded; of the turn, since its start."""
        now = self.recorder.services.running_seconds()
        if not self.path:
            return now
        starts = self.recorder.view.at(join(self.path, 1), "action_start")
        return now - float(starts[0].payload.get("ran", 0.0)) if starts else 0.0

    def left(self) -> float:
        """Seconds until it is up; 0 or less where it is."""
        own = self.seconds - self.spent()
        return min(own, self.outer.left()) if self.outer else own

    def expired(self) -> float | None:
        """The seconds that were allowed where they are up, its own or its caller's; None while some are left."""
        return self.limit() if self.left() <= 0 else None

    def limit(self) -> float:
        """The seconds that were allowed, its own or its caller's: those that are up first."""
        if self.outer and self.outer.left() < self.seconds - self.spent():
            return self.outer.limit()
        return self.seconds
