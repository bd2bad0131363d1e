"""The columns of a prompt's row that are folded from its steps: state, stop reason and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from agents.engine.closing import USAGE, answer_price, answer_usage, turn_end
from agents.engine.ledger import JSON, Step
from agents.engine.view import is_round
from conversations.models.prompt import State

PROGRESS_LESS = {"action_call", "action_start", "action_retry", "note"}
"""Steps that a worker also writes on its way to the point where the one before it was lost."""

COUNTED = ("rounds", "pauses", *USAGE, "cost_nano_usd", "unpriced")
"""The columns that count."""


UNCHANGED = "unchanged"
"""The `wake_at` of steps that change nothing about it."""


@dataclass
class PromptStanding:
    """What a number of steps change in a prompt's row. `state` is "" if they do not change it.

    `wake_at`: when the first of the sleeps is over, as ISO time; None for no time.
    """

    state: str = ""
    stop_reason: str = ""
    wake_at: str | None = UNCHANGED
    counts: Counter[str] = field(default_factory=Counter)
    ended: bool = False
    releases: bool = False
    progress: bool = False

    def after(self, steps: Iterable[Step]) -> PromptStanding:
        """Fold these steps in, and return self."""
        for step in steps:
            self._fold(step)
        return self

    def columns(self) -> dict[str, JSON]:
        """Return the columns of a prompt that has these steps and no others."""
        counts = {name: self.counts[name] for name in COUNTED}
        return {"state": self.state or State.QUEUED.value, "stop_reason": self.stop_reason, **counts}

    def _fold(self, step: Step) -> None:
        self.progress = self.progress or step.type not in PROGRESS_LESS
        if not step.path:
            self._fold_root(step)
        elif is_round(step):
            self.counts["rounds"] += 1
        elif step.type == "action_result" and step.actor == "system" and "decision" not in step.payload:
            self.wake_at = step.payload.get("until")  # it was a sleep; the next one, beside a gate
        if (used := answer_usage(step)) is not None:
            for name in USAGE:
                self.counts[name] += used.get(name, 0)
            price = answer_price(step)
            self.counts["unpriced" if price is None else "cost_nano_usd"] += 1 if price is None else price

    def _fold_root(self, step: Step) -> None:
        if step.type in ("action_start", "resume"):
            self.state = State.RUNNING.value
        elif step.type == "pause":
            people = step.payload.get("pending_action_count") != 0
            self.state, self.releases = (State.WAITING if people else State.SLEEPING).value, True
            self.counts["pauses"] += people
        elif step.type == "action_result":
            self.state, self.stop_reason = turn_end(step)
            self.ended = self.releases = True
        if step.type in ("pause", "resume", "action_result"):
            self.wake_at = step.payload.get("until") if step.type == "pause" else None
