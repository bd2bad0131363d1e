"""What one command may use, and how the kernel is told."""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

from agents.plugins.shell import tree

SECONDS = 60
"""How long a command may run unless its call says otherwise."""
SECONDS_MOST = 590
"""Ten seconds below the longest that any tool may take, so that a command always ends by its own limit."""
MEMORY = 2 * 2**30
"""Bytes of memory: of addresses in each process, and in use by all of them together."""
PROCESSES = 256
"""Processes at one time."""
FILE_SIZE = 2**30
"""Bytes of each file that is written."""
OPEN_FILES = 1024
OUTPUT = 2**20
"""Bytes kept of stdout and of stderr each: half of it from the beginning, half from the end."""
_NICE = 19
"""The site answers people while a command computes."""


def confine(seconds: int) -> None:
    """Bind this process, and all that come of it, to the limits; called between fork and exec.

    The processors' time is a last resort, for a process that nobody watches any more: more than `seconds` allow.
    """
    tree.die_with_parent()
    os.setpriority(os.PRIO_PROCESS, 0, _NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # where memory runs out, the command goes before the site
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_AS, MEMORY)
    _limit(resource.RLIMIT_FSIZE, FILE_SIZE)
    _limit(resource.RLIMIT_NOFILE, OPEN_FILES)
    _limit(resource.RLIMIT_CPU, (seconds + 10) * (os.cpu_count() or 1))
    if user := os.getuid():  # the kernel counts per user, threads too, and never root's
        _limit(resource.RLIMIT_NPROC, tree.threads_of(user) + 4 * PROCESSES)


def _limit(kind: int, value: int) -> None:
    """Lower a limit; one that is lower already stays."""
    hard = resource.getrlimit(kind)[1]
    least = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with contextlib.suppress(ValueError, OSError):  # not every system has every limit
        resource.setrlimit(kind, (least, least))
