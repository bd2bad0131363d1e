"""Stalled processes: stopped beyond their lease, and continued once another process has taken over."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from conversations.models import Prompt
from tests.crash.settings import SETTINGS
from tests.crash.workers import Worker

LONGEST_SECONDS = 3 * float(SETTINGS["AGENTSITE_LEASE_SECONDS"])
"""The longest stall. A process stopped within a transaction holds a lock, so that no other can take over."""


class Stall:
    """The process that a crash point stopped. `passes` is the file of the point.

    It goes on once another worker has claimed the prompt, or, `until_ended`, once the turn has ended without it.
    """

    def __init__(self, passes: Path, *, until_ended: bool) -> None:
        self._marker, self._until_ended = Path(f"{passes}.stopped"), until_ended
        self.pid = 0
        """The process id; 0 while none is stopped."""
        self._went_on = 0

    def tend(self, prompt: Prompt) -> None:
        """Check whether a process is stopped by now, or has been stopped for long enough."""
        if not self.pid and not self._went_on and self._marker.exists() and (pid := self._marker.read_text()):
            self.pid, self._since, self._fence = int(pid), time.monotonic(), prompt.fence
        if not self.pid:
            return
        taken_over = prompt.ended if self._until_ended else prompt.fence > self._fence
        if taken_over or time.monotonic() - self._since > LONGEST_SECONDS:
            os.kill(self.pid, signal.SIGCONT)
            self.pid, self._went_on = 0, self.pid

    def over(self, worker: Worker) -> bool:
        """Whether no process is stopped, and the one that was has ended, so that it writes nothing more."""
        return not self.pid and not (self._went_on and worker.runs(self._went_on))
