"""What a command uses besides the memory of its processes: its folder, and open files that are in no folder."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from agents.plugins.files.usage import Usage, measure
from agents.plugins.shell.limits import RESERVE

STEP_SECONDS = 0.005
"""Seconds for which a folder is measured at a time: its supervisor has to watch for fork bombs too."""
PAUSE = 10
"""How many times as long as a measurement took nothing is measured after it, and PAUSE_SECONDS at least."""
PAUSE_SECONDS = 0.25


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

    def is_full(self, more: int) -> bool:
        """Return whether the folder, with `more` bytes of deleted files, has grown beyond its limits or fills the disk.

        What was too large already may shrink, or stay as it is: how else should a command tidy up?
        """
        used, files = self._found.bytes + more, self._found.files
        if used > max(self._most.bytes, self._before.bytes) or files > max(self._most.files, self._before.files):
            return True
        left = _free(self._path)
        return left < RESERVE and left + RESERVE < self._free


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


def _free(path: str) -> int:
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize
