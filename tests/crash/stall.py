"""A process that stands still beyond its lease, and goes on when another has taken over."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from conversations.models import Prompt
from tests.crash.settings import SETTINGS
from tests.crash.workers import Worker

LONGEST_SECONDS = 3 * float(SETTINGS["AGENTSITE_LEASE_SECONDS"])
"""It goes on then in any case: who stands still in a transaction holds a lock, and nobody can take over."""


class Stall:
    """The one process that a crash point stopped. `passes`: the point's file.

    It goes on once another worker has claimed the prompt, or, `until_ended`, once the turn has ended without it.
    """

    def __init__(self, passes: Path, *, until_ended: bool) -> None:
        self._marker, self._until_ended = Path(f"{passes}.stopped"), until_ended
        self.pid = 0
        """Whose id; 0 while none stands still."""
        self._went_on = 0

    def tend(self, prompt: Prompt) -> None:
        """See whether one stands still by now, or has stood still for long enough."""
        if not self.pid and not self._went_on and self._marker.exists() and (pid := self._marker.read_text()):
            self.pid, self._since, self._fence = int(pid), time.monotonic(), prompt.fence
        if not self.pid:
            return
        taken_over = prompt.ended if self._until_ended else prompt.fence > self._fence
        if taken_over or time.monotonic() - self._since > LONGEST_SECONDS:
            os.kill(self.pid, signal.SIGCONT)
            self.pid, self._went_on = 0, self.pid

    def over(self, worker: Worker) -> bool:
        """Whether nobody stands still, and who did has come to an end: then it writes nothing any more."""
        return not self.pid and not (self._went_on and worker.runs(self._went_on))
