"""Progress: how far a policy says that it is. The first and the last are recorded, and at most one a second between.

A step of it is recorded together with whatever comes next; until then, and between two steps, a draft shows it.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from agents.engine import actors
from agents.engine.ledger import JSON, Step, canonical, valid_text
from agents.engine.paths import progress as draft_at
from agents.engine.runtime.recorder import Recorder
from agents.engine.secrets import hide

WORDS_MOST = 300
"""Characters of the words of one; longer ones are cut."""
EVERY = timedelta(seconds=1)
"""The least time between two that are recorded, but for the last."""


class Progress:
    """What one run of a policy says of how far it is. `policy` is its name, `path` its call."""

    def __init__(self, recorder: Recorder, policy: str, path: str) -> None:
        self._recorder, self._policy, self._path = recorder, policy, path
        self._said = 0
        self._staged_at: datetime | None = None
        self._left: dict[str, JSON] | None = None  # the last one, if it is not staged

    def say(self, done: float, total: float | None, text: str) -> None:
        """Say it, unless a run before this one has recorded it, or a later one. See Context.progress."""
        _check(done, total, text)
        self._said += 1
        recorded = self._recorder.view.at(self._path, "progress")
        if recorded and self._said <= recorded[-1].payload["said"]:
            return
        words = hide(valid_text(text))
        words = words if len(words) <= WORDS_MOST else f"{words[: WORDS_MOST - 1]}…"
        said: dict[str, JSON] = {"done": done, "total": total, "text": words, "said": self._said}
        now, self._left = self._recorder.services.now(), said
        if self._staged_at is None or now - self._staged_at >= EVERY:
            self._staged_at = now
            self.keep()
        self._recorder.services.draft(draft_at(self._path), canonical(said), attempt=self._said)

    def keep(self) -> None:
        """Stage the last one, if that was not done yet: the policy ends, or waits for long."""
        if self._left is not None:
            self._recorder.stage(Step(actors.policy(self._policy), "progress", self._left, path=self._path))
            self._left = None


def _check(done: object, total: object, text: object) -> None:
    for number in (done, 0 if total is None else total):
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise TypeError(f"progress is told in numbers, not {number!r}")
        if not 0 <= number < math.inf:
            raise ValueError(f"progress is told in numbers from 0 on, not {number!r}")
    if not isinstance(text, str):
        raise TypeError(f"the words of progress are a text, not {text!r}")
