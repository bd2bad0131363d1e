"""What a folder holds: its bytes on the disk, and how many files, folders and links."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ENTRIES = 50
"""Entries of a folder that are read between two pauses."""


class Usage(NamedTuple):
    """The bytes and the number of files, folders and links."""

    bytes: int
    files: int


def usage_of(folder: Path) -> Usage:
    """Return what this folder holds."""
    return next(found for found in measure(str(folder)) if found)


def measure(path: str) -> Iterator[Usage | None]:
    """Yield None every few entries, and what the folder holds at the end. Links are not followed.

    A command may be changing it meanwhile: a folder that was swapped for a link to another is left out, and so is what
    is not read yet when a folder was moved away below this. Raises OSError if the folder itself cannot be opened.
    """
    size, count, linked = 0, 0, set[int]()
    waiting: list[list[_Found]] = [[]]  # the folders to be read, in the one that is open and in each one above it
    above: list[os.stat_result] = []
    here = os.open(path, _FOLDER)
    try:
        entries = _listed(here)
        while True:
            for entry in entries:
                count += 1
                if count % ENTRIES == 0:
                    yield None
                with suppress(OSError):  # it was removed in the meantime
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        waiting[-1].append((entry.name, found))
                    elif found.st_nlink > 1:
                        if found.st_ino in linked:
                            continue
                        linked.add(found.st_ino)
                    # What is read or copied has holes as zeros, and a backup of it no end.
                    size += max(found.st_blocks * 512, found.st_size)
            if waiting[-1]:
                name, seen = waiting[-1].pop()
                with suppress(OSError):
                    below = _open(name, seen, here)
                    above.append(os.fstat(here))
                    waiting.append([])
                    os.close(here)
                    here = below
                    entries = _listed(here)
            elif above:
                waiting.pop()
                up = _open("..", above.pop(), here)
                os.close(here)
                here = up
            else:
                break
    except NotADirectoryError:  # it was moved while it was read
        pass
    finally:
        os.close(here)
    yield Usage(size, count)


def _listed(folder: int) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        yield from entries


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_Found = tuple[str, os.stat_result]
"""The name of a folder, and what was seen there."""


def _open(name: str, seen: os.stat_result, above: int) -> int:
    """Open the folder with this name in the one that is open. What its owner may not read is made readable first.

    Step by step, because a command may nest folders so deeply that they have no path. Raises NotADirectoryError if it
    is not the one that was `seen`, and OSError if it cannot be opened.
    """
    try:
        folder = os.open(name, _FOLDER, dir_fd=above)
    except PermissionError:
        handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
        try:
            Path(f"/proc/self/fd/{handle}").chmod(stat.S_IMODE(os.fstat(handle).st_mode) | stat.S_IRWXU)
        finally:
            os.close(handle)
        folder = os.open(name, _FOLDER, dir_fd=above)
    if not os.path.samestat(os.fstat(folder), seen):
        os.close(folder)
        raise NotADirectoryError(name)
    return folder


def readable(size: int) -> str:
    """Return a number of bytes as the site's pages show it: 812 bytes, 1.5 MB, 4 GB. A kilobyte has 1,024 bytes."""
    for unit, bytes_each in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if size >= bytes_each:
            return f"{size / bytes_each:,.1f}".removesuffix(".0") + f" {unit}"
    return f"{size} bytes"
