"""Named places where the crash harness kills a process. Inert unless `AGENTSITE_CRASH` is set."""

from __future__ import annotations

import os
import signal
from pathlib import Path


def crashpoint(name: str) -> None:
    """Kill this process, as kill -9 does, at the n-th pass of the point that `AGENTSITE_CRASH=point:n:file` names.

    Every pass of every point is written to `file`, by all processes: one that is started anew is not killed again, and
    a run that is to be killed nowhere (n = 0) tells which passes there are.
    """
    if not (asked := os.environ.get("AGENTSITE_CRASH")):
        return
    point, nth, file = asked.split(":", 2)
    with Path(file).open("a") as passes:
        passes.write(f"{name}\n")
    if name == point and Path(file).read_text().split().count(name) == int(nth):
        os.kill(os.getpid(), signal.SIGKILL)
