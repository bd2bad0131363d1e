"""The control group of a command, where the worker may make one: the kernel counts and limits the memory in it.

It counts what no list of processes shows, such as pages that several processes share, and files in /tmp, which is in
memory. See https://docs.kernel.org/admin-guide/cgroup-v2.html and, for older systems, cgroup-v1/memory.html.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from agents.plugins.shell.limits import MEMORY

_OWN = Path("/proc/self/cgroup")
_MOUNTS = Path("/proc/self/mountinfo")
_PREFIX = "agentsite-"
"""The names of groups begin with it, and end with the process id of the supervisor that made them."""
_PROCESSES, _CHILDREN_HAVE = "cgroup.procs", "cgroup.subtree_control"


class _Version(NamedTuple):
    """The names of a version's files: limits of the memory, and of swap; and counters, with one line for `oom_kill`."""

    memory: str
    swap: tuple[str, int]
    events: str


_V1 = _Version("memory.limit_in_bytes", ("memory.memsw.limit_in_bytes", MEMORY), "memory.oom_control")
_V2 = _Version("memory.max", ("memory.swap.max", 0), "memory.events")


@dataclass(frozen=True)
class Group:
    """A control group whose processes together use no more than MEMORY."""

    folder: Path
    version: _Version

    def enter(self) -> None:
        """Move this process into the group, and so all that it starts. Raises OSError."""
        (self.folder / _PROCESSES).write_text(str(os.getpid()))

    def ran_out(self) -> bool:
        """Return whether the kernel ended a process of the group because its memory was used up."""
        counters = dict(line.split() for line in (self.folder / self.version.events).read_text().splitlines())
        return int(counters["oom_kill"]) > 0


@contextmanager
def group() -> Iterator[Group | None]:
    """Yield a new group for one command, which is removed in the end; None where this process can make none."""
    made = _make()
    try:
        yield made
    finally:
        if made:
            with suppress(OSError):  # a process that hangs in the kernel is still in it: a later command removes it
                made.folder.rmdir()


def _make() -> Group | None:
    try:
        place, version = next(_places())
        _tidy(place)
        folder = place / f"{_PREFIX}{os.getpid()}"
        folder.mkdir()
    except (OSError, StopIteration):
        return None
    try:
        (folder / version.memory).write_text(str(MEMORY))
        name, swap = version.swap
        if (folder / name).exists():  # not on a machine that has no swap
            (folder / name).write_text(str(swap))
        made = Group(folder, version)
        made.ran_out()  # a kernel before 4.13 does not say
    except (OSError, KeyError):
        folder.rmdir()
        return None
    return made


def _places() -> Iterator[tuple[Path, _Version]]:
    """Yield the folder in which this process may make groups that limit memory, if there is one. Raises OSError.

    In version 2, a group with processes has no groups below it that limit anything: a command's is made beside the
    worker's own. For that, the group above both has to be handed to the worker's user.
    """
    for line in _OWN.read_text().splitlines():
        number, controllers, own = line.split(":", 2)
        if "memory" in controllers.split(",") and (mounted := _mounted("cgroup", "memory", own)):
            yield mounted, _V1
        elif number == "0" and (mounted := _mounted("cgroup2", "", own)):
            above = mounted.parent
            # a process may only be moved by whoever may write the list of the group above both
            if not (_has(above / "cgroup.controllers") and os.access(above / _PROCESSES, os.W_OK)):
                continue
            if not _has(above / _CHILDREN_HAVE):
                (above / _CHILDREN_HAVE).write_text("+memory")
            yield above, _V2


def _has(file: Path) -> bool:
    """Return whether this list of controllers, which the groups outside of the mounted ones have not, has memory's."""
    return file.exists() and "memory" in file.read_text().split()


def _mounted(kind: str, option: str, own: str) -> Path | None:
    """Return the folder of the group `own`: where a file system of this kind, with this option, shows it."""
    for line in _MOUNTS.read_text().splitlines():
        fields, _, source = line.partition(" - ")
        root, point = fields.split()[3:5]
        filesystem, _, options = source.split(" ", 2)
        if filesystem == kind and (not option or option in options.split(",")) and Path(own).is_relative_to(root):
            return Path(point) / Path(own).relative_to(root)
    return None


def _tidy(place: Path) -> None:
    """Remove the groups of supervisors that were killed."""
    for left in place.glob(f"{_PREFIX}*"):
        if not Path("/proc", left.name.removeprefix(_PREFIX)).exists():
            with suppress(OSError):  # something in it still runs
                left.rmdir()
