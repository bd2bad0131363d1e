"""Workspaces: the folder of each conversation, in which its agent works."""

from __future__ import annotations

import os
from pathlib import Path

from django.conf import settings

from conversations.files.removal import remove_tree


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
