"""What a command uses besides the memory of its processes: its folder, and open files that are in no folder."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from agents.plugins.files.usage import Usage, measure
from agents.plugins.shell.limits import RESERVE

STEP_SECONDS = 0.005
"""Seconds for which a folder is measured at a time: its supervisor has to watch for fork bombs too."""
PAUSE = 10
"""How many times as long as a measurement took nothing is measured after it, and PAUSE_SECONDS at least."""
PAUSE_SECONDS = 0.25
SMALL = 2**20
"""Bytes by which the folder may grow, or the disk lose space, where nothing is left of the disk for commands."""


class Folder:
    """The use of a folder, measured a little at a time, so that nothing else has to wait for it.

    `most`: what it may hold.
    """

    def __init__(self, path: str, most: Usage) -> None:
        self._path, self._most = path, most
        self.device = Path(path).stat().st_dev
        self._before = self._found = next(found for found in measure(path) if found)
        self._free = _free(path)
        self._due, self._began = time.monotonic() + PAUSE_SECONDS, 0.0
        self._measuring: Iterator[Usage | None] | None = None

    def go_on(self) -> None:
        """Measure for at most STEP_SECONDS, if it is time to."""
        now = time.monotonic()
        if self._measuring is None and now >= self._due:
            self._measuring, self._began = measure(self._path), now
        while self._measuring and time.monotonic() < now + STEP_SECONDS:
            if found := next(self._measuring):
                self._measuring, self._found, now = None, found, time.monotonic()
                self._due = now + max(PAUSE_SECONDS, PAUSE * (now - self._began))

    def is_full(self, more: int, hides: Callable[[], bool]) -> bool:
        """Return whether the folder, with `more` bytes of deleted files, has grown beyond its limits or fills the disk.

        `hides`: whether the command may hold files that nothing lists. Then all that the disk has lost may be its own.
        What was too large already may shrink, or stay as it is: how else should a command tidy up?
        """
        used, files = self._found.bytes + more, self._found.files
        if used > max(self._most.bytes, self._before.bytes) or files > max(self._most.files, self._before.files):
            return True
        left = _free(self._path)
        lost = self._free - left
        if left < RESERVE and (used > self._before.bytes + SMALL or lost > RESERVE):
            return True
        much = lost > SMALL if left < RESERVE else self._before.bytes + lost > self._most.bytes
        return much and hides()


def unlisted(pids: Iterable[int], device: int) -> tuple[int, int]:
    """Return the bytes of open files that no folder contains: of those in memory, and of those on the disk `device`.

    Memory files (memfds) never had a name, and belong to no process until it maps them; a deleted file keeps its space
    while it is open.
    """
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as opened:  # it ended in the meantime
            for entry in opened:
                with suppress(OSError):
                    file = entry.stat()
                    if not file.st_nlink and stat.S_ISREG(file.st_mode):
                        found[file.st_dev, file.st_ino] = file.st_blocks * 512
    on_disk = sum(size for (where, _), size in found.items() if where == device)
    return sum(found.values()) - on_disk, on_disk


def hidden(pids: Iterable[int], device: int) -> bool:
    """Return whether any of these processes holds files of this device that `unlisted` cannot find.

    A deleted file keeps its space while it is mapped, or on its way through a socket to another process.
    """
    return any(_maps_deleted(pid, device) or _sends_files(pid) for pid in pids)


def _maps_deleted(pid: int, device: int) -> bool:
    on_device = f" {os.major(device):02x}:{os.minor(device):02x} "
    with suppress(OSError):  # it ended in the meantime
        maps = Path(f"/proc/{pid}/maps").read_text(errors="replace")
        return any(on_device in line and line.endswith(" (deleted)") for line in maps.splitlines())
    return False


def _sends_files(pid: int) -> bool:
    """Whether files wait in a socket of this process. The kernel says so since 5.10; before, nobody knows."""
    with suppress(OSError), os.scandir(f"/proc/{pid}/fdinfo") as opened:
        for entry in opened:
            with suppress(OSError):
                told = Path(entry.path).read_text().partition("scm_fds:")[2].split()
                if told and told[0] != "0":
                    return True
    return False


def _free(path: str) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize
