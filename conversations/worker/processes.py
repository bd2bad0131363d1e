"""The names of worker processes, by which others on their machine notice that one has died."""

from __future__ import annotations

import hashlib
import os
import socket
from contextlib import suppress
from pathlib import Path


def this_process() -> str:
    """Return the name of this process among all that share its host's name: its id, and where that id counts."""
    return f"{os.getpid()}.{_namespace()}"


def is_gone(process: str) -> bool:
    """Whether the process with this name is certainly no longer there. One in another container may be."""
    pid, _, namespace = process.partition(".")
    return namespace == _namespace() and not _is_running(int(pid))


def _namespace() -> str:
    """Return a short name for what the ids of processes depend on: their namespace, and the boot of the machine."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        known = f"{Path('/proc/self/ns/pid').readlink()} {boot}"
    except OSError:  # not Linux, which alone has such namespaces
        known = socket.gethostname()
    return hashlib.sha256(known.encode()).hexdigest()[:8]


def _is_running(pid: int) -> bool:
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # the first process of a container adopts orphans
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Whether it has ended, and only its parent has not asked what became of it. Not known but on Linux."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"  # proc(5)
    return False
