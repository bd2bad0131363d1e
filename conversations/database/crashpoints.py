"""Crash points: named places where the crash tests kill or stop a process. Inert unless `AGENTSITE_CRASH` is set."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agents.engine.ledger import Step


def crashpoint(name: str, about: Sequence[Step] = ()) -> None:
    """Kill or stop this process at the n-th pass of the point that `AGENTSITE_CRASH=point:n:KILL|STOP:file` names.

    Every pass of every point, in any process, adds a line to `file` with the steps it is `about`. So a process that is
    restarted is not killed again, and a run with n = 0, in which nothing is killed, lists the passes that exist. A
    process that is to be stopped first writes its id to `file.stopped`.
    """
    if not (asked := os.environ.get("AGENTSITE_CRASH")):
        return
    point, nth, how, file = asked.split(":", 3)
    with Path(file).open("a") as passes:
        passes.write(f"{name} {','.join(f'{step.path}:{step.type}' for step in about)}\n")
    if name != point or sum(line.split()[0] == name for line in Path(file).read_text().splitlines()) != int(nth):
        return
    if how == "STOP":
        Path(f"{file}.stopped").write_text(str(os.getpid()))
    os.kill(os.getpid(), signal.Signals[f"SIG{how}"])
