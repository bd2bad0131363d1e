"""A folder that nothing leads out of. All access to a workspace's files goes through here.

A path is never checked first and opened later: each part is opened relative to the folder before it, by descriptor and
refusing links, so whoever swaps a folder for a link meanwhile gains nothing. What is opened is what is read.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import nsmallest
from pathlib import Path
from typing import Literal

from agents.engine.errors import ToolError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""O_NONBLOCK: opening a FIFO would otherwise wait for a writer for ever."""

Kind = Literal["file", "folder", "link", "other"]


@dataclass(frozen=True)
class Entry:
    """Something in a folder: its path below the root, and of a file its size in bytes."""

    path: str
    kind: Kind
    size: int = 0


class Box:
    """The files below `root`. Each method raises ToolError, in words for a model, where it cannot or must not go."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextmanager
    def folder(self, path: str = ".") -> Iterator[int]:
        """A descriptor of the folder at `path`."""
        with _explained(path):
            descriptor = os.open(self.root, _FOLDER)
        try:
            for part in parts(path):
                with _explained(path, part, descriptor):
                    below = os.open(part, _FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def place(self, path: str) -> Iterator[tuple[int, str]]:
        """Where `path` is, or may come to be: a descriptor of its folder, and its name there."""
        *above, name = parts(path) or (".",)
        with self.folder("/".join(above)) as descriptor:
            yield descriptor, name

    @contextmanager
    def file(self, path: str) -> Iterator[tuple[int, int]]:
        """A descriptor of the regular file at `path`, to read, and its size in bytes."""
        with self.place(path) as (folder, name), _explained(path, name, folder):
            descriptor = os.open(name, _FILE, dir_fd=folder)
        try:
            yield descriptor, _regular(path, os.fstat(descriptor)).st_size
        finally:
            os.close(descriptor)

    def read(self, path: str, most: int) -> bytes:
        """The content of the file at `path`. Raises ToolError `too_large` beyond `most` bytes."""
        with self.file(path) as (descriptor, size), os.fdopen(descriptor, "rb", closefd=False) as stream:
            content = stream.read(most + 1) if size <= most else b""
        if max(size, len(content)) > most:  # it may have grown since
            raise ToolError(f"{path!r} has {size:,} bytes, and at most {most:,} can be read.", code="too_large")
        return content

    def walk(self, path: str = ".", depth: int = 1, most: int = 1000) -> Iterator[Entry]:
        """What the folder at `path` holds, by name, `depth` levels deep; of each folder at most the first `most`."""
        with self.folder(path) as descriptor:
            yield from _walk(descriptor, "/".join(parts(path)), depth, most)


def parts(path: str) -> tuple[str, ...]:
    """The names in `path`, from the root down. Raises ToolError for a path that is absolute, or leads up."""
    if path.startswith("/"):
        raise ToolError(f"{path!r} is absolute: give a path relative to the workspace.", code="bad_path")
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    if ".." in names:
        raise ToolError(f"{path!r} leads up: only what is in the workspace can be reached.", code="bad_path")
    if "\0" in path or any("\ud800" <= character <= "\udfff" for character in path):
        raise ToolError(f"{path!r} is no path: it has a character that no file name has.", code="bad_path")
    return names


def _walk(descriptor: int, prefix: str, depth: int, most: int) -> Iterator[Entry]:
    with os.scandir(descriptor) as found:
        entries = nsmallest(most, found, key=lambda entry: entry.name)
    for entry in entries:
        path = f"{prefix}/{entry.name}" if prefix else entry.name
        try:
            status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue  # removed since the folder was read
        yield Entry(path, kind := _kind(status), status.st_size if kind == "file" else 0)
        if kind == "folder" and depth > 1:
            try:
                below = os.open(entry.name, _FOLDER, dir_fd=descriptor)
            except OSError:
                continue  # closed to us, or something else by now
            try:
                yield from _walk(below, path, depth - 1, most)
            finally:
                os.close(below)


def _kind(status: os.stat_result) -> Kind:
    if stat.S_ISREG(status.st_mode):
        return "file"
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    return "link" if stat.S_ISLNK(status.st_mode) else "other"


def _regular(path: str, status: os.stat_result) -> os.stat_result:
    """`status` of a file with one name.

    A second name (a hard link) may stand outside: then what looks like a workspace's file is somebody else's.
    """
    kind = _kind(status)
    if kind == "folder":
        raise ToolError(f"{path!r} is a folder.", code="not_a_file")
    if kind != "file":
        raise ToolError(f"{path!r} is a pipe, socket or device, not a file.", code="not_a_file")
    if status.st_nlink > 1:
        raise ToolError(f"{path!r} has hard links, so it may be a file from outside: copy it first.", code="link")
    return status


@contextmanager
def _explained(path: str, part: str = "", folder: int | None = None) -> Iterator[None]:
    """Turn an OSError about `part` in `folder` into a ToolError about `path`."""
    try:
        yield
    except OSError as error:
        if part and _is_link(part, folder):
            raise ToolError(f"{path!r}: {part!r} is a link, and links are not followed.", code="link") from error
        code, why = _REASONS.get(error.errno or 0, ("failed", f"cannot be opened: {error.strerror}"))
        raise ToolError(f"{path!r} {why}.", code=code) from error


_REASONS = {
    errno.ENOENT: ("not_found", "does not exist"),
    errno.ENOTDIR: ("not_a_folder", "is not a folder, or leads through something that is none"),
    errno.ENAMETOOLONG: ("bad_path", "is too long"),
    errno.EACCES: ("forbidden", "is closed to the worker"),
    errno.ELOOP: ("link", "is a link, and links are not followed"),
    errno.ENXIO: ("not_a_file", "is a pipe, socket or device, not a file"),
}
"""Error numbers in words. A socket cannot be opened at all: ENXIO."""


def _is_link(name: str, folder: int | None) -> bool:
    """Only words a message: what is refused is refused already."""
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
