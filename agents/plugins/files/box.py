"""Confined file access: a folder that no path leads out of. All access to a workspace's files goes through here.

A path is never checked first and opened later: each part is opened relative to the folder before it, by descriptor and
refusing links. Swapping a folder for a link in the meantime therefore gains nothing. What is read is what was opened;
what is written is always a new file, which is then renamed.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from heapq import nsmallest
from itertools import count
from pathlib import Path, PurePosixPath

from agents.engine.errors import ToolError
from agents.plugins.files.status import Kind, kind_of, require_regular, status_of, tool_errors

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""O_NONBLOCK: otherwise opening a FIFO would wait forever for a writer."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
"""O_EXCL: whatever has the name already is never opened."""

PATH_MOST = 1_000
"""Bytes of a path: a quarter of Linux's limit (PATH_MAX), so that any program can work with longer paths below it."""
NAME_MOST = 255
"""Bytes of one name: the limit of Linux's file systems (NAME_MAX)."""
_PART = re.compile(r"\.[0-9a-f]{16}\.part")
"""The name of a file that is being written, until it is renamed. Such files that a killed worker left are removed."""
LEFT_AFTER = 3600.0
"""Seconds after which nothing writes to such a file any more: six times as long as any tool may run."""


@dataclass(frozen=True)
class Entry:
    """An entry of a folder: its path below the root, its kind and, for a file, its size in bytes."""

    path: str
    kind: Kind
    size: int = 0


class Box:
    """The files below `root`. Methods raise ToolError, in words for a model, for what cannot or must not be reached."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextmanager
    def folder(self, path: str = ".", *, make: bool = False) -> Iterator[int]:
        """Open the folder at `path` and yield its descriptor. `make`: missing folders on the way are created."""
        with tool_errors(path):
            descriptor = os.open(self.root, _FOLDER)
        try:
            for part in parts(path):
                with tool_errors(path, part, descriptor):
                    made = make and _make(part, descriptor)
                    below = os.open(part, _FOLDER, dir_fd=descriptor)
                    if made:
                        _give(below, descriptor)
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def place(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Open the folder of `path`, which may not exist yet. Yields the folder's descriptor and the name in it."""
        *above, name = parts(path) or (".",)
        with self.folder("/".join(above), make=make) as descriptor:
            yield descriptor, name

    @contextmanager
    def file(self, path: str) -> Iterator[tuple[int, int]]:
        """Open the regular file at `path` for reading. Yields its descriptor and its size in bytes."""
        with self.place(path) as (folder, name), tool_errors(path, name, folder):
            descriptor = os.open(name, _FILE, dir_fd=folder)
        try:
            yield descriptor, require_regular(path, os.fstat(descriptor)).st_size
        finally:
            os.close(descriptor)

    def read(self, path: str, most: int) -> bytes:
        """Return the content of the file at `path`. Raises ToolError `too_large` if it has more than `most` bytes."""
        with self.file(path) as (descriptor, size), os.fdopen(descriptor, "rb", closefd=False) as stream:
            content = stream.read(most + 1) if size <= most else b""
        if max(size, len(content)) > most:  # it may have grown since
            raise ToolError(f"{path!r} has {size:,} bytes; at most {most:,} can be read.", code="too_large")
        return content

    def kind(self, path: str) -> Kind | None:
        """Return the kind of what is at `path`; None if nothing is there, or a folder on the way is missing."""
        try:
            with self.place(path) as (folder, name), tool_errors(path, name, folder):
                return kind_of(os.stat(name, dir_fd=folder, follow_symlinks=False))
        except ToolError as error:
            if error.code != "not_found":
                raise
            return None

    def write(self, path: str, content: bytes) -> None:
        """Write `content` to the file at `path`, completely or not at all. Missing folders are created, and stay.

        An existing file keeps its permissions. Raises ToolError if anything but a regular file is there.
        """
        file_parts(path)
        with self.place(path, make=True) as (folder, name), tool_errors(path, name, folder):
            _sweep(folder)
            old = status_of(name, folder)
            mode = require_regular(path, old).st_mode & 0o777 if old else 0o644
            part = _part()
            with _removed_on_error(part, folder):
                _fill(_new(part, folder), [content], mode)
                os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)

    def part(self, content: Iterable[bytes]) -> Path:
        """Write this content to a temporary file at the root and return its path. `adopt` gives it its name.

        The pieces are never in memory all at once.
        """
        part = _part()
        with self.folder() as folder, tool_errors(part, part, folder):
            _sweep(folder)
            with _removed_on_error(part, folder):
                _fill(_new(part, folder), content, 0o644)
        return self.root / part

    def adopt(self, path: str, part: Path) -> str:
        """Rename a temporary file of the same file system. Returns its path: `path`, or `name-2.ext` if that is taken.

        Missing folders are created. If it fails, the temporary file stays.
        """
        *above, name = file_parts(path)
        with self.folder("/".join(above), make=True) as folder, tool_errors(path, name, folder):
            _sweep(folder)
            free = _reserve(name, folder)
            with _removed_on_error(free, folder):
                _give(part, folder)
                os.rename(part, free, dst_dir_fd=folder)
            os.fsync(folder)
            return "/".join([*above, free])

    def remove(self, path: str) -> None:
        """Remove the file or link at `path`, if there is one."""
        with self.place(path) as (folder, name), tool_errors(path, name, folder), suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)

    def walk(self, path: str = ".", depth: int = 1, most: int = 1000) -> Iterator[Entry]:
        """Yield the entries of the folder at `path`, by name, `depth` levels deep; at most `most` of each folder."""
        with self.folder(path) as descriptor:
            yield from _walk(descriptor, "/".join(parts(path)), depth, most)


def parts(path: str) -> tuple[str, ...]:
    """Return the names in `path`, from the root down. Raises ToolError if it is absolute, leads up or is invalid."""
    if path.startswith("/"):
        raise ToolError(f"{path!r} is absolute: give a path relative to the workspace.", code="bad_path")
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    if ".." in names:
        raise ToolError(f"{path!r} contains '..': only paths inside the workspace can be used.", code="bad_path")
    if "\0" in path or any("\ud800" <= character <= "\udfff" for character in path):
        raise ToolError(f"{path!r} has a character that a file name cannot contain.", code="bad_path")
    if len(path.encode()) > PATH_MOST or any(len(name.encode()) > NAME_MOST for name in names):
        raise ToolError(f"{path[:60]!r}... is too long.", code="bad_path")
    if any(map(_PART.fullmatch, names)):
        raise ToolError(f"{path!r} is a name reserved for files that are being written.", code="bad_path")
    return names


def file_parts(path: str) -> tuple[str, ...]:
    """Return the names in the path of a file. Raises ToolError for the root, and for a path that ends in a slash."""
    names = parts(path)
    if not names or path.endswith("/"):
        raise ToolError(f"{path!r} names a folder, not a file.", code="not_a_file")
    return names


def _part() -> str:
    """Return a new name for a file that is being written."""
    return f".{secrets.token_hex(8)}.part"


@contextmanager
def _removed_on_error(name: str, folder: int) -> Iterator[None]:
    """Remove this file of the folder if the block fails."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise


def _sweep(folder: int) -> None:
    """Remove the temporary files that killed workers left in the folder."""
    past = time.time() - LEFT_AFTER
    with os.scandir(folder) as found:
        for entry in found:
            with suppress(OSError):  # it is gone, or cannot be removed: not an error of the current write
                if _PART.fullmatch(entry.name) and _left(entry.stat(follow_symlinks=False), past):
                    os.unlink(entry.name, dir_fd=folder)


def _left(status: os.stat_result, past: float) -> bool:
    return kind_of(status) == "file" and status.st_mtime < past


def _make(name: str, folder: int) -> bool:
    """Make a folder of this name, if nothing has the name. Returns whether it did."""
    try:
        os.mkdir(name, 0o755, dir_fd=folder)
    except FileExistsError:
        return False
    return True


def _give(new: int | Path, folder: int) -> None:
    """Give what root has just made in the folder to the folder's owner, whom commands run as.

    In a workspace, `new` must be a descriptor: by its name, a command could have something else given to it.
    """
    if os.geteuid() == 0:
        owner = os.fstat(folder)
        os.chown(new, owner.st_uid, owner.st_gid)


def _new(name: str, folder: int) -> int:
    """Create a file of this name, which nothing may have, and return its descriptor."""
    descriptor = os.open(name, _NEW, 0o600, dir_fd=folder)
    try:
        _give(descriptor, folder)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _fill(descriptor: int, content: Iterable[bytes], mode: int) -> None:
    """Write a new file, flush it to the disk and close it."""
    with os.fdopen(descriptor, "wb") as stream:
        os.fchmod(descriptor, mode)
        stream.writelines(content)
        stream.flush()
        os.fsync(descriptor)


def _reserve(name: str, folder: int) -> str:
    """Reserve the first of `name`, `name-2.ext` and so on that is free in the folder, with an empty file."""
    free, numbers = name, count(2)
    while True:
        try:
            os.close(os.open(free, _NEW, 0o600, dir_fd=folder))
        except FileExistsError:
            free = _numbered(name, next(numbers))
        else:
            return free


def _numbered(name: str, number: int) -> str:
    """Return `name` with a number before its extension, shortened if it is too long: report-2.pdf."""
    ending = PurePosixPath(name).suffix
    tail = f"-{number}{ending}"
    stem = name.removesuffix(ending) if ending else name
    while len((stem + tail).encode()) > NAME_MOST:
        if not stem:
            raise ToolError(f"{name!r} is taken, and too long to add a number.", code="bad_path")
        stem = stem[:-1]
    return stem + tail


def _walk(descriptor: int, prefix: str, depth: int, most: int) -> Iterator[Entry]:
    with os.scandir(descriptor) as found:
        there = (entry for entry in found if not _PART.fullmatch(entry.name))
        entries = nsmallest(most, there, key=lambda entry: entry.name)
    for entry in entries:
        path = f"{prefix}/{entry.name}" if prefix else entry.name
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # removed since the folder was read
        yield Entry(path, kind := kind_of(status), status.st_size if kind == "file" else 0)
        if kind == "folder" and depth > 1:
            try:
                below = os.open(entry.name, _FOLDER, dir_fd=descriptor)
            except OSError:
                continue  # not accessible, or something else by now
            try:
                yield from _walk(below, path, depth - 1, most)
            finally:
                os.close(below)
