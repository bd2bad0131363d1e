"""The process tree below this process, including descendants with a session of their own and orphans.

On Linux all of them can be found: a process whose parent died is given to the nearest ancestor that adopts orphans. On
a system without /proc only the child's process group is found, and it counts as one process.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
"""From linux/prctl.h."""
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None
_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_FREEZES = 20
"""Passes over the processes that were started while others were being stopped. Two suffice, except for a fork bomb."""


class Process(NamedTuple):
    """A process with its parent, its group and its memory in bytes. Shared memory counts for each process."""

    pid: int
    parent: int
    group: int
    memory: int


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent dies."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(number: signal.Signals = signal.SIGKILL, *, parent: int | None = None) -> None:
    """Have this process sent this signal when the thread that started it ends. Does nothing outside Linux.

    `parent`: the process that started it. Raises ProcessLookupError if that has ended by now: no signal would come.
    """
    _prctl(_PR_SET_PDEATHSIG, number)
    if parent is not None and os.getppid() != parent:
        raise ProcessLookupError("the process that started it has ended")


@contextlib.contextmanager
def ahead_of_all() -> Iterator[None]:
    """Schedule this process before all others inside the block, so that a fork bomb cannot outrun the one ending it.

    Only root may do this, and only root needs it: the kernel limits the processes of other users. A nice value would
    not help: Linux weighs it within a session, and a fork bomb may open a session for each process.
    """
    _schedule(0, first=True)
    try:
        yield
    finally:
        _schedule(0, first=False)


def descendants(child: int) -> list[Process]:
    """Return all descendants of this process. `child` was started by it, as the leader of a process group."""
    if not _PROC.is_dir():
        return _group(child)
    children: dict[int, list[Process]] = {}
    for process in _processes():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), ())
        found += below
        waiting += (process.pid for process in below)
    return found


def population(child: int, first: int) -> int:
    """Return how many processes are in the session of `child` or, if its child `first` opened a sandbox, inside that.

    This is a quick count. Reading each process could take seconds while a fork bomb grows: the reader of a process that
    just ended has to free its memory, and waits for locks that starving processes hold.
    """
    if inside := _box(first):
        with contextlib.suppress(OSError):  # it may end in the meantime
            return sum(1 for _ in _entries(inside))
    return sum(_session(int(entry.name)) == child for entry in _entries())


def kill(child: int) -> None:
    """Kill all descendants (see `descendants`). Call it again while there are any.

    They are stopped first, so that none starts another while its siblings die. Whole groups are stopped at once, which
    no member can escape by forking. If they fork into new groups faster than they are found, those found are killed.
    """
    stopped: set[int] = set()
    for _ in range(_FREEZES):
        new = [process for process in descendants(child) if process.pid not in stopped]
        if not new:
            break
        _send_groups(signal.SIGSTOP, (process.group for process in new))
        send(signal.SIGSTOP, (process.pid for process in new))
        stopped.update(process.pid for process in new)
    _send_groups(signal.SIGKILL, (process.group for process in descendants(child)))
    send(signal.SIGKILL, stopped)


def kill_box(child: int, first: int) -> None:
    """Kill `child`, a running sandbox, and its child `first`. The kernel then ends everything inside it at once.

    It does not read any process first: see population().
    """
    for pid in (child, first if _box(first) else 0):
        if pid:
            send(signal.SIGKILL, [pid])
            _schedule(pid, first=True)  # a fork bomb would keep it from dying; it can start nothing more by now


def send(number: signal.Signals, pids: Iterable[int], deliver: Callable[[int, int], None] = os.kill) -> None:
    """Send a signal to processes. Those that have ended, or belong to another user, are skipped."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            deliver(pid, number)


def _send_groups(number: signal.Signals, groups: Iterable[int]) -> None:
    send(number, set(groups) - {os.getpgrp()}, os.killpg)


def threads_of(user: int) -> int:
    """Return how many threads this user runs now, which is what RLIMIT_NPROC counts."""
    threads = 0
    for entry in _entries():
        with contextlib.suppress(OSError):  # it ended in the meantime
            if entry.stat().st_uid == user:
                threads += int(_stat(entry)[17])
    return threads


def _group(leader: int) -> list[Process]:
    try:
        os.killpg(leader, 0)
    except OSError:
        return []
    return [Process(leader, os.getpid(), leader, 0)]


def _processes() -> Iterator[Process]:
    for entry in _entries():
        with contextlib.suppress(OSError):  # it ended in the meantime
            stat = _stat(entry)
            yield Process(int(entry.name), int(stat[1]), int(stat[2]), int(stat[21]) * _PAGE)


def _schedule(pid: int, *, first: bool) -> None:
    """Schedule the process (0: this one) before all ordinary ones, or as an ordinary one. Only root may do this."""
    if sys.platform == "linux" and not os.getuid():
        policy, priority = (os.SCHED_RR, 1) if first else (os.SCHED_OTHER, 0)
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.sched_setscheduler(pid, policy, os.sched_param(priority))


def _box(pid: int) -> Path | None:
    """Return the process's own /proc; None if it shares ours, or may not be read."""
    inside = _PROC / str(pid) / "root/proc"
    try:
        return inside if inside.stat().st_dev != _PROC.stat().st_dev else None
    except OSError:
        return None


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _entries(proc: Path = _PROC) -> Iterator[Path]:
    return (entry for entry in proc.iterdir() if entry.name.isdigit()) if proc.is_dir() else iter(())


def _stat(entry: Path) -> list[bytes]:
    """Return the fields of /proc/<pid>/stat from the third on (proc(5)). The name may hold spaces and brackets."""
    return (entry / "stat").read_bytes().rpartition(b")")[2].split()


def _prctl(option: int, value: int) -> None:
    if _libc is not None:
        _libc.prctl(option, value)
