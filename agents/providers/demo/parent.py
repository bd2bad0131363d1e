"""Ending a child process together with its parent."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
"""See `man 2 prctl`."""


def die_with_parent(sig: signal.Signals = signal.SIGTERM) -> None:
    """Have the kernel send `sig` when the parent process ends, however it ends. Does nothing outside Linux."""
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, sig)
    if os.getppid() != parent:  # it ended before the call
        os.kill(os.getpid(), sig)
