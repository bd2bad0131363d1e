"""What a folder holds: its bytes on the disk, and how many files, folders and links."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
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

    A command may be changing it meanwhile: a folder that was swapped for a link to another is left out.
    """
    size, count, linked = 0, 0, set[int]()
    waiting: list[tuple[str, os.stat_result | None]] = [(path, None)]
    while waiting:
        here, seen = waiting.pop()
        try:
            with _opened(here, seen) as folder, os.scandir(folder) as entries:
                for entry in entries:
                    count += 1
                    if count % ENTRIES == 0:
                        yield None
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        waiting.append((f"{here}/{entry.name}", found))
                    elif found.st_nlink > 1:
                        if found.st_ino in linked:
                            continue
                        linked.add(found.st_ino)
                    # What is read or copied has holes as zeros, and a backup of it no end.
                    size += max(found.st_blocks * 512, found.st_size)
        except OSError:
            continue  # it was removed in the meantime, is not ours to read, or is nested too deeply to have a path
    yield Usage(size, count)


@contextmanager
def _opened(path: str, seen: os.stat_result | None) -> Iterator[int]:
    """Open a folder and yield its descriptor. Raises OSError if it is not the one that was `seen` at this path."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if seen and not os.path.samestat(os.fstat(folder), seen):
            raise NotADirectoryError(path)
        yield folder
    finally:
        os.close(folder)


def readable(size: int) -> str:
    """Return a number of bytes as the site's pages show it: 812 bytes, 1.5 MB, 4 GB. A kilobyte has 1,024 bytes."""
    for unit, bytes_each in (("GB", 2**30), ("MB", 2**20), ("KB", 2**10)):
        if size >= bytes_each:
            return f"{size / bytes_each:,.1f}".removesuffix(".0") + f" {unit}"
    return f"{size} bytes"
