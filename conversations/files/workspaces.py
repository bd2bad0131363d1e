"""Workspaces: the folder of each conversation, in which its agent works."""

from __future__ import annotations

import logging
import os
import secrets
from contextlib import suppress
from itertools import count
from pathlib import Path

from django.conf import settings

logger = logging.getLogger(__name__)


def folder_of(conversation_id: int) -> Path:
    """Return the conversation's folder (mode 0700), separate from database and key. It is created on first use.

    If the worker is root, it gives the folder to the user of commands before each of them (agents.plugins.shell.user).
    """
    folder = root() / str(conversation_id)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def clear(conversation_id: int) -> None:
    """Remove the conversation's folder and everything in it.

    Also done before a conversation begins: if a process was killed before its transaction ended, the database reuses
    the id, and the folder may hold somebody else's files.
    """
    folder = Path(settings.AGENTSITE_WORKSPACES, str(conversation_id))
    if os.path.lexists(folder):
        remove_tree(folder)


def root() -> Path:
    """Return the folder of all workspaces (mode 0700). Files directly in it share its file system only."""
    folder = Path(settings.AGENTSITE_WORKSPACES)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def remove_tree(folder: Path) -> None:
    """Remove a folder and everything in it, even read-only folders (such as Go's module cache).

    Links are not followed. Whatever cannot be removed is logged; nothing is raised.
    """
    left = list[str]()
    try:
        _empty(folder, left)
        folder.rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        left.append(str(error))
    if left:
        logger.error("%s could not be removed completely: %s", folder, "; ".join(left[:3]))


def _empty(folder: Path, left: list[str]) -> None:
    """Remove everything in this folder; add to `left` what cannot be removed, and why.

    Each folder below is moved up into it first, so that none is nested too deeply. Raises OSError if the folder itself
    cannot be opened.
    """
    top, prefix, number = _open(os.fspath(folder)), f".{secrets.token_hex(8)}.", count()
    try:
        waiting = _remove_files(top, left)
        while waiting:
            name = waiting.pop()
            try:
                here = _open(name, top)
                try:
                    for below in _remove_files(here, left):
                        os.close(_open(below, here))  # a folder that its owner may not write cannot be moved
                        moved = f"{prefix}{next(number)}"
                        os.rename(below, moved, src_dir_fd=here, dst_dir_fd=top)
                        waiting.append(moved)
                finally:
                    os.close(here)
                os.rmdir(name, dir_fd=top)
            except OSError as error:
                left.append(str(error))
    finally:
        os.close(top)


def _remove_files(folder: int, left: list[str]) -> list[str]:
    """Remove the files and links directly in an open folder; return the names of its folders."""
    folders = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
                continue
            try:
                os.unlink(entry.name, dir_fd=folder)
            except OSError as error:
                left.append(str(error))
    return folders


def _open(name: str, above: int | None = None) -> int:
    """Open the folder `name`, in the open folder `above`, and give its owner all rights to it. Raises OSError."""
    found = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        place = f"/proc/self/fd/{found}"
        with suppress(OSError):  # somebody else's: what cannot be removed then is told
            Path(place).chmod(0o700)  # fchmod needs a folder that can be read
        return os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(found)
