"""Walking the folders that go into an archive, while agents may be working in them.

Folders are opened by descriptor, so that nobody can replace one by a link and have somebody else's file archived.
"""

from __future__ import annotations

import errno
import os
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

FILES, WORKSPACES = "files", "workspaces"
"""The folders as they are named in an archive."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
GONE = (errno.ENOENT, errno.ELOOP, errno.ENOTDIR)
"""Errors for an entry that was removed or replaced after its name was read."""
PATH_MOST, LEVELS_MOST = 1_000, 100
"""Bytes of a folder's path, and its depth: an agent can nest folders endlessly, and each level takes a descriptor."""

HOLES_MOST = 2**30
"""Bytes of all holes of files that an archive has as zeros. A file with more of them is left out, and named."""

Entry = tuple[tarfile.TarInfo, BinaryIO | None]
"""An entry of an archive, named by its path in it. A file has its content, open for reading."""


@dataclass
class Walk:
    """A walk through folders. `left_out` and `unread` say what was not yielded, as the manifest does."""

    left_out: int = 0
    unread: list[str] = field(default_factory=list)
    holes: int = 0  # bytes, of all files so far

    def below(self, root: Path, name: str) -> Iterator[Entry]:
        """Yield everything below `root`, which is called `name` in the archive, folders before their content.

        Entries that disappear meanwhile are skipped. Raises OSError if `root` itself cannot be read.
        """
        descriptor = os.open(root, FOLDER)
        try:
            yield from self._entries(descriptor, PurePosixPath(name))
        finally:
            os.close(descriptor)

    def _entries(self, folder: int, here: PurePosixPath) -> Iterator[Entry]:
        for name in os.listdir(folder):
            path = here / name
            try:
                mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                if stat.S_ISLNK(mode):
                    yield from self._link(path, os.readlink(name, dir_fd=folder))
                elif stat.S_ISDIR(mode):
                    yield from self._folder(path, folder)
                else:
                    yield from self._file(path, folder)
            except OSError as error:
                if error.errno not in GONE:
                    self.unread.append(f"{path}: {error.strerror or error}")

    def _folder(self, path: PurePosixPath, above: int) -> Iterator[Entry]:
        if len(os.fsencode(path)) > PATH_MOST or len(path.parts) > LEVELS_MOST:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        descriptor = os.open(path.name, FOLDER, dir_fd=above)
        try:
            yield archive_entry(str(path), os.fstat(descriptor).st_mode, tarfile.DIRTYPE), None
            yield from self._entries(descriptor, path)
        finally:
            os.close(descriptor)

    def _link(self, path: PurePosixPath, target: str) -> Iterator[Entry]:
        if stays_inside(path, target):
            yield archive_entry(str(path), 0o777, tarfile.SYMTYPE, target), None
        else:
            self.left_out += 1

    def _file(self, path: PurePosixPath, above: int) -> Iterator[Entry]:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a file replaced by a pipe must not block the backup
        with os.fdopen(os.open(path.name, flags, dir_fd=above), "rb") as content:
            found = os.fstat(content.fileno())
            if not stat.S_ISREG(found.st_mode):
                self.left_out += 1
            elif self.holes + (holes := holes_of(content, found.st_size)) > HOLES_MOST:
                self.unread.append(f"{path}: {holes / 2**30:,.0f} GB of it are a hole, which would be written as zeros")
            else:
                self.holes += holes
                yield archive_entry(str(path), found.st_mode, size=found.st_size), content


def archive_entry(
    name: str, mode: int = 0o600, kind: bytes = tarfile.REGTYPE, target: str = "", size: int = 0
) -> tarfile.TarInfo:
    """Return an entry for an archive; `target` is where a link leads, `size` that of a file in bytes."""
    info = tarfile.TarInfo(name)
    info.mode, info.type, info.linkname, info.size = mode & 0o777, kind, target, size
    return info


def holes_of(file: BinaryIO, size: int) -> int:
    """Return how many of a file's bytes were never written. Compressed ones were, though they take few blocks."""
    data, end = 0, 0
    while end < size:
        try:
            start = os.lseek(file.fileno(), end, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:  # no data until the end
                raise
            break
        end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
        data += end - start
    os.lseek(file.fileno(), 0, os.SEEK_SET)
    return max(size - data, 0)


def stays_inside(link: PurePosixPath, target: str) -> bool:
    """Whether a link at this path of an archive is below a workspace, and leads into the same one or to its folder.

    Among the files there are no links.
    """
    workspace = 2  # levels: workspaces/ID
    if link.parts[0] != WORKSPACES or len(link.parts) <= workspace or not target or target.startswith("/"):
        return False
    depth = len(link.parts) - 1
    for part in target.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < workspace:
            return False
    return True
