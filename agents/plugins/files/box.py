"""A folder that nothing leads out of. All access to a workspace's files goes through here.

A path is never checked first and opened later: each part is opened relative to the folder before it, by descriptor and
refusing links, so whoever swaps a folder for a link meanwhile gains nothing. What is opened is what is read; what is
written is always a new file, which then takes the name.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from heapq import nsmallest
from itertools import count
from pathlib import Path, PurePosixPath

from agents.engine.errors import ToolError
from agents.plugins.files.status import Kind, explained, kind_of, regular, standing

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
"""O_NONBLOCK: opening a FIFO would otherwise wait for a writer for ever."""
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
"""O_EXCL: what has the name already is never opened, whatever it is."""

PATH_MOST = 1_000
"""Bytes of a path: a quarter of what Linux takes (PATH_MAX), so that any program can go on from there."""
NAME_MOST = 255
"""Bytes of one name, as Linux's file systems take it (NAME_MAX)."""
_PART = re.compile(r"\.[0-9a-f]{16}\.part")
"""What is being written, until it takes its name. What a killed worker leaves is no file of anybody's."""
LEFT_AFTER = 3600.0
"""Seconds after which nobody writes to such a file any more: six times as long as any tool may run."""


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
    def folder(self, path: str = ".", *, make: bool = False) -> Iterator[int]:
        """A descriptor of the folder at `path`. `make`: folders that are missing on the way are made.

        Where that fails, or what is done there, those that were made go again.
        """
        made: list[str] = []
        with explained(path):
            descriptor = os.open(self.root, _FOLDER)
        try:
            for number, part in enumerate(names := parts(path), 1):
                with explained(path, part, descriptor):
                    if make and _made(part, descriptor):
                        made.append("/".join(names[:number]))
                    below = os.open(part, _FOLDER, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = below
            yield descriptor
        except BaseException:
            self._unmake(made)
            raise
        finally:
            os.close(descriptor)

    def _unmake(self, folders: Sequence[str]) -> None:
        """Take away these folders, the last first, as far as they are empty."""
        for path in reversed(folders):
            with suppress(OSError, ToolError), self.place(path) as (folder, name):
                os.rmdir(name, dir_fd=folder)

    @contextmanager
    def place(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Where `path` is, or may come to be: a descriptor of its folder, and its name there."""
        *above, name = parts(path) or (".",)
        with self.folder("/".join(above), make=make) as descriptor:
            yield descriptor, name

    @contextmanager
    def file(self, path: str) -> Iterator[tuple[int, int]]:
        """A descriptor of the regular file at `path`, to read, and its size in bytes."""
        with self.place(path) as (folder, name), explained(path, name, folder):
            descriptor = os.open(name, _FILE, dir_fd=folder)
        try:
            yield descriptor, regular(path, os.fstat(descriptor)).st_size
        finally:
            os.close(descriptor)

    def read(self, path: str, most: int) -> bytes:
        """The content of the file at `path`. Raises ToolError `too_large` beyond `most` bytes."""
        with self.file(path) as (descriptor, size), os.fdopen(descriptor, "rb", closefd=False) as stream:
            content = stream.read(most + 1) if size <= most else b""
        if max(size, len(content)) > most:  # it may have grown since
            raise ToolError(f"{path!r} has {size:,} bytes, and at most {most:,} can be read.", code="too_large")
        return content

    def kind(self, path: str) -> Kind | None:
        """What stands at `path`; None where nothing does, or where a folder on the way is missing."""
        try:
            with self.place(path) as (folder, name), explained(path, name, folder):
                status = standing(name, folder)
        except ToolError as error:
            if error.code != "not_found":
                raise
            return None
        return kind_of(status) if status else None

    def write(self, path: str, content: bytes) -> None:
        """Make `content` the file at `path`, whole or not at all; folders that are missing are made.

        A file that was there keeps its permissions. Anything else that was there is refused and stays.
        """
        file_parts(path)
        with self.place(path, make=True) as (folder, name), explained(path, name, folder):
            _sweep(folder)
            old = standing(name, folder)
            mode = regular(path, old).st_mode & 0o777 if old else 0o644
            part = _part()
            try:
                _fill(os.open(part, _NEW, 0o600, dir_fd=folder), [content], mode)
                os.rename(part, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(part, dir_fd=folder)
                raise
            os.fsync(folder)

    def part(self, content: Iterable[bytes]) -> Path:
        """A file with this content at the root, on the disk, which has no name of its own yet: see `adopt`.

        The pieces are not held together in memory.
        """
        part = _part()
        with self.folder() as folder, explained(part, part, folder):
            _sweep(folder)
            try:
                _fill(os.open(part, _NEW, 0o600, dir_fd=folder), content, 0o644)
            except BaseException:
                with suppress(OSError):
                    os.unlink(part, dir_fd=folder)
                raise
        return self.root / part

    def adopt(self, path: str, part: Path) -> str:
        """Give a part of the same file system its name; returns that: `path`, or `name-2.ext` where it is taken.

        Folders that are missing are made. Where it fails the part stays.
        """
        *above, name = file_parts(path)
        with self.folder("/".join(above), make=True) as folder, explained(path, name, folder):
            _sweep(folder)
            free = _taken(name, folder)
            try:
                os.rename(part, free, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(free, dir_fd=folder)
                raise
            os.fsync(folder)
            return "/".join([*above, free])

    def remove(self, path: str) -> None:
        """Take away the file at `path`, or the link; nothing where there is none."""
        with self.place(path) as (folder, name), explained(path, name, folder), suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)

    def walk(self, path: str = ".", depth: int = 1, most: int = 1000) -> Iterator[Entry]:
        """What the folder at `path` holds, by name, `depth` levels deep; of each folder at most the first `most`."""
        with self.folder(path) as descriptor:
            yield from _walk(descriptor, "/".join(parts(path)), depth, most)


def parts(path: str) -> tuple[str, ...]:
    """The names in `path`, from the root down. Raises ToolError for a path that is absolute, leads up, or is none."""
    if path.startswith("/"):
        raise ToolError(f"{path!r} is absolute: give a path relative to the workspace.", code="bad_path")
    names = tuple(name for name in path.split("/") if name not in ("", "."))
    if ".." in names:
        raise ToolError(f"{path!r} leads up: only what is in the workspace can be reached.", code="bad_path")
    if "\0" in path or any("\ud800" <= character <= "\udfff" for character in path):
        raise ToolError(f"{path!r} is no path: it has a character that no file name has.", code="bad_path")
    if len(path.encode()) > PATH_MOST or any(len(name.encode()) > NAME_MOST for name in names):
        raise ToolError(f"{path[:60]!r}... is too long.", code="bad_path")
    if any(map(_PART.fullmatch, names)):
        raise ToolError(f"{path!r} is a name that is kept for files that are being written.", code="bad_path")
    return names


def file_parts(path: str) -> tuple[str, ...]:
    """The parts of a path that may be a file's. Raises ToolError for the root, and for one that ends in a slash."""
    names = parts(path)
    if not names or path.endswith("/"):
        raise ToolError(f"{path!r} names a folder, not a file.", code="not_a_file")
    return names


def _part() -> str:
    """A name for what is being written."""
    return f".{secrets.token_hex(8)}.part"


def _made(name: str, folder: int) -> bool:
    """Make a folder of this name in the folder; False where something has it already."""
    try:
        os.mkdir(name, 0o755, dir_fd=folder)
    except FileExistsError:
        return False
    return True


def _sweep(folder: int) -> None:
    """Take away the parts that killed workers left in the folder."""
    past = time.time() - LEFT_AFTER
    with os.scandir(folder) as found:
        for entry in found:
            with suppress(OSError):  # gone meanwhile, or not to be taken away: whoever writes need not know
                if _PART.fullmatch(entry.name) and _left(entry.stat(follow_symlinks=False), past):
                    os.unlink(entry.name, dir_fd=folder)


def _left(status: os.stat_result, past: float) -> bool:
    return kind_of(status) == "file" and status.st_mtime < past


def _fill(descriptor: int, content: Iterable[bytes], mode: int) -> None:
    """Write a new file to its end and to the disk, and close it."""
    with os.fdopen(descriptor, "wb") as stream:
        os.fchmod(descriptor, mode)
        stream.writelines(content)
        stream.flush()
        os.fsync(descriptor)


def _taken(name: str, folder: int) -> str:
    """The first of `name`, `name-2.ext` and so on that nothing has in the folder: an empty file has it from now on."""
    free, numbers = name, count(2)
    while True:
        try:
            os.close(os.open(free, _NEW, 0o600, dir_fd=folder))
        except FileExistsError:
            free = _numbered(name, next(numbers))
        else:
            return free


def _numbered(name: str, number: int) -> str:
    """`name` with a number before its ending, cut where it would be too long: report-2.pdf."""
    ending = PurePosixPath(name).suffix
    tail = f"-{number}{ending}"
    stem = name.removesuffix(ending) if ending else name
    while len((stem + tail).encode()) > NAME_MOST:
        if not stem:
            raise ToolError(f"{name!r} is taken, and too long for a number.", code="bad_path")
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
                continue  # closed to us, or something else by now
            try:
                yield from _walk(below, path, depth - 1, most)
            finally:
                os.close(below)
