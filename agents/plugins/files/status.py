"""File status: what a name in a folder is, and why it cannot be used, in words for a model."""

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
    """Return the kind of what has this status; `other` is a pipe, socket or device."""
    if stat.S_ISREG(status.st_mode):
        return "file"
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    return "link" if stat.S_ISLNK(status.st_mode) else "other"


def printable(name: str) -> str:
    """Return a name on one line, with escapes for unprintable characters, so that no name can look like two entries."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def require_regular(path: str, status: os.stat_result) -> os.stat_result:
    """Return `status` if it is that of a regular file with one name. Raises ToolError for anything else.

    A second name (a hard link) may be outside: then what looks like a file of the workspace belongs to somebody else.
    """
    if reason := _NOT_REGULAR.get(kind_of(status)):
        code, why = _REASONS[reason]
        raise ToolError(f"{path!r} {why}.", code=code)
    if status.st_nlink > 1:
        raise ToolError(f"{path!r} has hard links, so it may also be a file outside: copy it first.", code="link")
    return status


def status_of(name: str, folder: int) -> os.stat_result | None:
    """Return the status of `name` in the folder, of a link its own; None if there is nothing."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


@contextmanager
def tool_errors(path: str, part: str = "", folder: int | None = None) -> Iterator[None]:
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
    errno.ENOTDIR: ("not_a_folder", "is not a folder, or leads through something that is not a folder"),
    errno.EISDIR: ("not_a_file", "is a folder"),
    errno.ENAMETOOLONG: ("bad_path", "is too long"),
    errno.EACCES: ("forbidden", "cannot be accessed: the worker lacks the permission"),
    errno.ELOOP: ("link", "is a link, and links are not followed"),
    errno.ENXIO: ("not_a_file", "is a pipe, socket or device, not a file"),
    errno.ENOSPC: ("full", "cannot be written: the disk is full"),
    errno.EDQUOT: ("full", "cannot be written: the disk is full"),
}
"""Codes and words for error numbers. ENXIO: a socket cannot be opened at all."""

_NOT_REGULAR = {"folder": errno.EISDIR, "link": errno.ELOOP, "other": errno.ENXIO}
"""The error numbers with which the kernel refuses what is not a regular file, by its kind."""


def _is_link(name: str, folder: int | None) -> bool:
    """Return whether `name` is a link. This only chooses the message: the access has already been refused."""
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
