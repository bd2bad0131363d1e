"""What stands at a name, and why it cannot be used, in words for a model."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from agents.engine.errors import ToolError

Kind = Literal["file", "folder", "link", "other"]


def kind_of(status: os.stat_result) -> Kind:
    """What this is the status of; `other` are pipes, sockets and devices."""
    if stat.S_ISREG(status.st_mode):
        return "file"
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    return "link" if stat.S_ISLNK(status.st_mode) else "other"


def printable(name: str) -> str:
    """A name on one line: what cannot be printed is shown as its escape, so that no name can pass for two entries."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def regular(path: str, status: os.stat_result) -> os.stat_result:
    """`status` of a file with one name. Raises ToolError for anything else.

    A second name (a hard link) may stand outside: then what looks like a workspace's file is somebody else's.
    """
    match kind_of(status):
        case "folder":
            raise ToolError(f"{path!r} is a folder.", code="not_a_file")
        case "link":
            raise ToolError(f"{path!r} is a link, and links are not followed.", code="link")
        case "other":
            raise ToolError(f"{path!r} is a pipe, socket or device, not a file.", code="not_a_file")
    if status.st_nlink > 1:
        raise ToolError(f"{path!r} has hard links, so it may be a file from outside: copy it first.", code="link")
    return status


def standing(name: str, folder: int) -> os.stat_result | None:
    """The status of what has this name in the folder, itself where it is a link; None where nothing has."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


@contextmanager
def explained(path: str, part: str = "", folder: int | None = None) -> Iterator[None]:
    """Turn an OSError about `part` in `folder` into a ToolError about `path`."""
    try:
        yield
    except OSError as error:
        if part and _is_link(part, folder):
            raise ToolError(f"{path!r}: {part!r} is a link, and links are not followed.", code="link") from error
        code, why = _REASONS.get(error.errno or 0, ("failed", f"cannot be used: {error.strerror}"))
        raise ToolError(f"{path!r} {why}.", code=code) from error


_REASONS = {
    errno.ENOENT: ("not_found", "does not exist"),
    errno.ENOTDIR: ("not_a_folder", "is not a folder, or leads through something that is none"),
    errno.EISDIR: ("not_a_file", "is a folder"),
    errno.ENAMETOOLONG: ("bad_path", "is too long"),
    errno.EACCES: ("forbidden", "is closed to the worker"),
    errno.ELOOP: ("link", "is a link, and links are not followed"),
    errno.ENXIO: ("not_a_file", "is a pipe, socket or device, not a file"),
    errno.ENOSPC: ("full", "cannot be written: the disk is full"),
    errno.EDQUOT: ("full", "cannot be written: the disk is full"),
}
"""Error numbers in words. A socket cannot be opened at all: ENXIO."""


def _is_link(name: str, folder: int | None) -> bool:
    """Only words a message: what is refused is refused already."""
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
