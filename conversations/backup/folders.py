"""Walking the folders that go into an archive, while agents may be working in them.

Folders are opened by descriptor, so that nobody can replace one by a link and have somebody else's file archived.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
GONE = (errno.ENOENT, errno.ELOOP, errno.ENOTDIR)
"""Errors for an entry that was removed or replaced after its name was read."""
PATH_MOST, LEVELS_MOST = 1_000, 100
"""Bytes of a folder's path, and its depth: an agent can nest folders endlessly, and each level takes a descriptor."""


@dataclass(frozen=True)
class FolderEntry:
    """An entry below a folder: `name` is its path in it, `mode` its permissions.

    A file has `content`, open for reading; a link that stays inside has a `target`; a folder has neither.
    """

    name: str
    mode: int
    content: BinaryIO | None = None
    target: str = ""


@dataclass(frozen=True)
class Unread:
    """An entry below a folder that could not be read, and the system's error message."""

    name: str
    why: str


def walk(root: Path, *, links_within: int = 0) -> Iterator[FolderEntry | Unread | None]:
    """Yield everything below `root`, folders before their content; None for special files and links that lead out.

    `links_within`: the level of the folders that links must not lead out of; 0: no links. Entries that disappear
    meanwhile are skipped. Raises OSError if `root` itself cannot be read.
    """
    descriptor = os.open(root, FOLDER)
    try:
        yield from _entries(descriptor, PurePosixPath(), links_within)
    finally:
        os.close(descriptor)


def _entries(folder: int, here: PurePosixPath, within: int) -> Iterator[FolderEntry | Unread | None]:
    for name in os.listdir(folder):
        path = here / name
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISLNK(mode):
                yield _link(path, os.readlink(name, dir_fd=folder), within)
            elif stat.S_ISDIR(mode):
                yield from _folder(name, path, folder, within)
            else:
                yield from _file(name, here, folder)
        except OSError as error:
            if error.errno not in GONE:
                yield Unread(str(path), error.strerror or str(error))


def _folder(name: str, path: PurePosixPath, above: int, within: int) -> Iterator[FolderEntry | Unread | None]:
    if len(os.fsencode(path)) > PATH_MOST or len(path.parts) > LEVELS_MOST:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    descriptor = os.open(name, FOLDER, dir_fd=above)
    try:
        yield FolderEntry(str(path), stat.S_IMODE(os.fstat(descriptor).st_mode))
        yield from _entries(descriptor, path, within)
    finally:
        os.close(descriptor)


def _link(name: PurePosixPath, target: str, within: int) -> FolderEntry | None:
    return FolderEntry(str(name), 0o777, target=target) if stays_inside(name, target, within) else None


def _file(name: str, here: PurePosixPath, descriptor: int) -> Iterator[FolderEntry | None]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a file replaced by a pipe must not block the backup
    with os.fdopen(os.open(name, flags, dir_fd=descriptor), "rb") as content:
        mode = os.fstat(content.fileno()).st_mode
        yield FolderEntry(str(here / name), stat.S_IMODE(mode), content) if stat.S_ISREG(mode) else None


def stays_inside(link: PurePosixPath, target: str, within: int) -> bool:
    """Whether a link at this path leads to a place inside the folder `within` levels down, or to that folder."""
    if not within or not target or target.startswith("/") or len(link.parts) <= within:
        return False
    depth = len(link.parts) - 1
    for part in target.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < within:
            return False
    return True
