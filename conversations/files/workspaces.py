"""Workspaces: the folder of each conversation, in which its agent works."""

from __future__ import annotations

import logging
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

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
    with suppress(RecursionError, OSError):  # nested too deeply, or removed meanwhile: logged below
        shutil.rmtree(folder, ignore_errors=True)
        if folder.is_dir() and not folder.is_symlink():
            _give_owner_access_to_all(folder)
            shutil.rmtree(folder, onerror=_log_failure)
    if os.path.lexists(folder):
        logger.error("%s could not be removed completely", folder)


def _give_owner_access_to_all(folder: Path) -> None:
    """Give the owner all rights to a folder and all folders below it, each before it is read."""
    _give_owner_access(str(folder))
    for _, names, _, above in os.fwalk(folder, follow_symlinks=False):
        for name in names:
            _give_owner_access(name, above)


def _give_owner_access(name: str, above: int | None = None) -> None:
    """Give the owner all rights to the folder `name` in the folder `above`, a descriptor."""
    with suppress(OSError):  # not a folder, or not ours: removing it will fail and be logged
        folder = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
        try:
            Path(f"/proc/self/fd/{folder}").chmod(0o700)  # fchmod needs a folder that can be read
        finally:
            os.close(folder)


def _log_failure(_function: object, path: str, failed: Any) -> None:
    logger.error("%s could not be removed: %s", path, failed[1])
