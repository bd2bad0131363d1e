"""Removing a folder with everything in it: however deep it is, whatever its rights, and without following a link."""

from __future__ import annotations

import errno
import logging
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger(__name__)

NAMED_MOST = 20
"""Things that could not be removed and are named in the log, of one folder."""
_REACHED = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def remove_tree(folder: Path) -> None:
    """Remove a folder and everything in it, even folders without permissions (such as Go's module cache).

    Links are not followed. Whatever cannot be removed is logged; nothing is raised.
    """
    failures: list[str] = []
    for _ in range(2):  # again, if a tool was still writing
        if os.path.lexists(folder):
            failures = _walk(folder)
    if os.path.lexists(folder):
        for failure in failures:
            logger.error("in %s: %s", folder, failure)
        logger.error("%s could not be removed completely", folder)


def _walk(folder: Path) -> list[str]:
    """Remove what can be removed of a folder, and return what could not, and why."""
    try:
        above = os.open(folder.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        return [str(error)]
    walk = _Walk(above, folder.name)
    try:
        walk.run()
    except OSError as error:
        walk.failed("..", error)
    finally:
        os.close(walk.here)
    return walk.failures


@dataclass
class _Level:
    """A folder on the way down: its name in the one above, which file it is, and the folders in it that are left."""

    name: str
    status: os.stat_result
    left: list[str]


class _Walk:
    """A walk through a tree, that removes each folder on the way back from it.

    Only the folder where it stands is open. Up it goes by `..`, and looks whether that is where it came from: a command
    could move a folder meanwhile, and something else would be removed.
    """

    def __init__(self, above: int, name: str) -> None:
        self.failures: list[str] = []
        self.here = above
        self.levels = [_Level("", os.fstat(above), [name])]

    def run(self) -> None:
        """Remove what can be removed, and keep what could not, and why. Raises OSError if there is no way back."""
        while (level := self.levels[-1]).left or len(self.levels) > 1:
            if level.left:
                self._go_down(level.left.pop())
            else:
                self._go_up()

    def _go_down(self, name: str) -> None:
        """Enter a folder and remove all but the folders in it. If it is no folder by now, remove it."""
        try:
            below = os.open(name, _REACHED, dir_fd=self.here)
        except (NotADirectoryError, FileNotFoundError):
            self._unlink(name)
            return
        except OSError as error:
            self.failed(name, error)
            return
        try:
            status = os.fstat(below)
            entries = _entries(below, status.st_mode)
        except OSError as error:
            os.close(below)
            self.failed(name, error)
            return
        os.close(self.here)
        self.here = below
        self.levels.append(_Level(name, status, [entry for entry, is_folder in entries if is_folder]))
        for entry, is_folder in entries:
            if not is_folder:
                self._unlink(entry)

    def _unlink(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self.here)
        except OSError as error:
            self.failed(name, error)

    def _go_up(self) -> None:
        """Return to the folder above, and remove the one just left. Raises OSError if the way back is another."""
        above = os.open("..", _REACHED, dir_fd=self.here)
        os.close(self.here)
        self.here = above
        left = self.levels.pop()
        if not os.path.samestat(os.fstat(above), self.levels[-1].status):
            raise OSError(errno.ESTALE, "it is elsewhere now")
        try:
            os.rmdir(left.name, dir_fd=above)
        except OSError as error:
            self.failed(left.name, error)

    def failed(self, name: str, error: OSError) -> None:
        """Keep that something could not be removed, unless somebody else did."""
        if not isinstance(error, FileNotFoundError) and len(self.failures) < NAMED_MOST:
            self.failures.append(f"{name!r}, {len(self.levels) - 1} levels down: {error.strerror}")


def _entries(folder: int, mode: int) -> list[tuple[str, bool]]:
    """Return the names in a folder, and whether each is a folder, after giving its owner all rights to it.

    They are read before the first is removed: some file systems skip others otherwise.
    """
    if mode & 0o700 != 0o700:
        with suppress(OSError):  # it is not ours: reading it may fail, and that is reported
            Path(f"/proc/self/fd/{folder}").chmod(0o700)  # fchmod needs a folder that can be read
    reading = os.open(".", _READ, dir_fd=folder)
    try:
        with os.scandir(reading) as entries:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    finally:
        os.close(reading)
