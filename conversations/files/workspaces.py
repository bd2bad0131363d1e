"""Where the files of a conversation lie that its agent works with."""

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
    """The conversation's own folder, 0700, made on first use, apart from database and key."""
    folder = _path(conversation_id)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def clear(conversation_id: int) -> None:
    """Remove the folder, with all that lies in it.

    Also before a conversation begins: where a process was killed before its transaction ended, the database gives the
    id anew, and what lay in the folder was somebody else's.
    """
    if os.path.lexists(folder := _path(conversation_id)):
        remove_tree(folder)


def root() -> Path:
    """The folder that holds them all, 0700: what lies beside them is of the same file system, and in no workspace."""
    folder = Path(settings.AGENTSITE_WORKSPACES)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _path(conversation_id: int) -> Path:
    return Path(settings.AGENTSITE_WORKSPACES) / str(conversation_id)


def remove_tree(folder: Path) -> None:
    """Remove a folder with all that lies in it; folders that refuse (Go makes its module cache read-only) are opened.

    No link is followed. What is left all the same is logged; nothing is raised.
    """
    with suppress(RecursionError, OSError):  # deeper than it can go, or gone meanwhile: told below
        shutil.rmtree(folder, ignore_errors=True)
        if folder.is_dir() and not folder.is_symlink():
            _give_owner_access_to_all(folder)
            shutil.rmtree(folder, onerror=_log_failure)
    if os.path.lexists(folder):
        logger.error("%s could not be removed whole", folder)


def _give_owner_access_to_all(folder: Path) -> None:
    """Let the owner into a folder and all below it, each before it is read."""
    _give_owner_access(str(folder))
    for _, names, _, above in os.fwalk(folder, follow_symlinks=False):
        for name in names:
            _give_owner_access(name, above)


def _give_owner_access(name: str, above: int | None = None) -> None:
    """Give the owner all rights to the folder `name` of the folder `above`, a descriptor."""
    with suppress(OSError):  # no folder, or not ours: removing it tells
        folder = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
        try:
            Path(f"/proc/self/fd/{folder}").chmod(0o700)  # fchmod wants a folder that can be read
        finally:
            os.close(folder)


def _log_failure(_function: object, path: str, failed: Any) -> None:
    logger.error("%s could not be removed: %s", path, failed[1])
