"""The folders that go into an archive, read while agents may be at work in them.

A folder is walked by descriptors, so that nobody can put a link in the place of one and have another's file archived.
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
"""What the system says of a thing that went, or became another, after its name was read."""
PATH_MOST, LEVELS_MOST = 1_000, 100
"""Bytes of a folder's path, and its depth: an agent can go down without end, and each level takes a descriptor."""


@dataclass(frozen=True)
class FolderEntry:
    """One thing below a folder: `name` is its path in it, `mode` its rights.

    `content` of a file, open for reading; `target` of a link that stays inside; neither: a folder.
    """

    name: str
    mode: int
    content: BinaryIO | None = None
    target: str = ""


@dataclass(frozen=True)
class Unread:
    """One thing below a folder that could not be read, and what the system says of it."""

    name: str
    why: str


def things_in(root: Path, *, links_within: int = 0) -> Iterator[FolderEntry | Unread | None]:
    """Everything below `root`, folders before what is in them; None for what is neither file, folder nor link inside.

    `links_within`: how many levels down a link may not lead out of; 0: no links. What goes meanwhile is skipped.
    Raises OSError where `root` itself cannot be read.
    """
    descriptor = os.open(root, FOLDER)
    try:
        yield from _things(descriptor, PurePosixPath(), links_within)
    finally:
        os.close(descriptor)


def _things(folder: int, here: PurePosixPath, within: int) -> Iterator[FolderEntry | Unread | None]:
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
        yield from _things(descriptor, path, within)
    finally:
        os.close(descriptor)


def _link(name: PurePosixPath, target: str, within: int) -> FolderEntry | None:
    return FolderEntry(str(name), 0o777, target=target) if stays(name, target, within) else None


def _file(name: str, here: PurePosixPath, descriptor: int) -> Iterator[FolderEntry | None]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # what became a pipe must not hold the backup
    with os.fdopen(os.open(name, flags, dir_fd=descriptor), "rb") as content:
        mode = os.fstat(content.fileno()).st_mode
        yield FolderEntry(str(here / name), stat.S_IMODE(mode), content) if stat.S_ISREG(mode) else None


def stays(link: PurePosixPath, target: str, within: int) -> bool:
    """Whether a link at this path leads to a place inside the folder `within` levels down, or to that folder."""
    if not within or not target or target.startswith("/") or len(link.parts) <= within:
        return False
    depth = len(link.parts) - 1
    for part in target.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < within:
            return False
    return True
