"""The limits of one command, and how they are set in the kernel."""

from __future__ import annotations

import contextlib
import os
import resource
from pathlib import Path

from agents.plugins.shell import keys, tree
from agents.plugins.shell.user import become

SECONDS = 60
"""The time limit of a command, unless its call gives another."""
SECONDS_MOST = 590
"""Ten seconds less than the longest time limit of any tool, so that a command always ends by its own limit."""
MEMORY = 2 * 2**30
"""Bytes of memory: the address space of each process, and what all of them use together, with their memory files."""
PROCESSES = 256
"""Processes at the same time."""
FILE_SIZE = 2**30
"""The largest file that a command can write, in bytes."""
RESERVE = 256 * 2**20
"""Bytes of the disk that a command does not get: the site needs space to record what happened."""
OPEN_FILES = 1024
OUTPUT = 2**20
"""Bytes kept of stdout and of stderr each: half of it from the beginning, half from the end."""
_NICE = 19
"""The lowest priority, so that the site still answers people while a command computes."""


def confine(seconds: int, user: int | None, folder: str, parent: int) -> None:
    """Apply the limits to this process and all its descendants, and make it one of this user, if one is given.

    Called between fork and exec; `parent` is the process that forked. The limit of CPU time is a last resort, for a
    process that nothing watches any more. It allows more than `seconds`. Raises OSError.
    """
    tree.die_with_parent(parent=parent)
    keys.leave_keyring()
    os.setpriority(os.PRIO_PROCESS, 0, _NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # if memory runs out, the command is killed, not the site
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_AS, MEMORY)
    _limit(resource.RLIMIT_FSIZE, FILE_SIZE)
    _limit(resource.RLIMIT_NOFILE, OPEN_FILES)
    _limit(resource.RLIMIT_CPU, (seconds + 10) * (os.cpu_count() or 1))
    if counted := os.getuid() if user is None else user:  # the kernel includes threads, and never counts root's
        _limit(resource.RLIMIT_NPROC, tree.threads_of(counted) + 4 * PROCESSES)
    if user is not None:
        become(user, folder, parent)


def _limit(kind: int, value: int) -> None:
    """Lower a limit. One that is already lower stays as it is."""
    hard = resource.getrlimit(kind)[1]
    least = value if hard == resource.RLIM_INFINITY else min(value, hard)
    with contextlib.suppress(ValueError, OSError):  # not every system has every limit
        resource.setrlimit(kind, (least, least))
