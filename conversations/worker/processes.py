"""The names of worker processes, and noticing on their machine that one has died: at once on Linux."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def this_process() -> str:
    """Return the name of this process among all that share its host's name: its id, and where that id counts."""
    return f"{os.getpid()}.{_namespace()}"


def is_gone(process: str) -> bool:
    """Whether the process with this name is certainly no longer there. One in another container may be."""
    pid, _, namespace = process.partition(".")
    return namespace == _namespace() and not is_running(int(pid))


def kill_in_group(process: str, group: int) -> None:
    """Kill the process with this name, if it is in this process group of this machine."""
    if is_in_group(process, group):
        with suppress(ProcessLookupError):
            os.kill(int(process.partition(".")[0]), signal.SIGKILL)


def is_in_group(process: str, group: int) -> bool:
    """Whether the process with this name runs in this process group of this machine."""
    pid, _, namespace = process.partition(".")
    with suppress(ProcessLookupError):
        return namespace == _namespace() and is_running(int(pid)) and os.getpgid(int(pid)) == group
    return False


class DeathWatch:
    """Descriptors that can be read once processes have ended, by `select`. None where the system does not have them."""

    def __init__(self) -> None:
        self.descriptors: list[int] = []

    def watch(self, processes: Iterable[str]) -> None:
        """Watch these processes, as far as they are in this namespace, instead of those before."""
        self.close()
        for process in processes:
            pid, _, namespace = process.partition(".")
            if namespace == _namespace() and hasattr(os, "pidfd_open"):
                with suppress(OSError):  # it has ended, or the kernel is older than 5.3: the next round notices
                    self.descriptors.append(os.pidfd_open(int(pid)))

    def close(self) -> None:
        """Watch nothing."""
        while self.descriptors:
            os.close(self.descriptors.pop())


def _namespace() -> str:
    """Return a short name for what the ids of processes depend on: their namespace, and the boot of the machine."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        known = f"{Path('/proc/self/ns/pid').readlink()} {boot}"
    except OSError:  # not Linux, which alone has such namespaces
        known = socket.gethostname()
    return hashlib.sha256(known.encode()).hexdigest()[:8]


def is_running(pid: int) -> bool:
    """Whether there is a process with this id, which has not ended."""
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
