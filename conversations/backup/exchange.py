"""Replacing the content of a folder: everything new is staged in it before the first thing is moved."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

from conversations.files.removal import remove_tree


class Exchange:
    """Replaces the content of `folder` with that of `content`. The folder itself stays, as it may be a mount.

    `stage` moves the new content in, which can fail if the disk is full. `swap` only renames within the folder, so it
    needs no permissions on what it moves. `clean`, which must follow in any case, deletes what is left aside.
    """

    def __init__(self, folder: Path, content: Path) -> None:
        self.folder, self.content = folder, content
        self.mark = f".restore-{secrets.token_hex(8)}-"
        self.staged: dict[Path, Path] = {}

    def stage(self) -> None:
        """Move the new content into the folder, aside. Raises OSError."""
        for new in self.content.iterdir() if self.content.exists() else ():
            aside = self._aside()
            shutil.move(new, aside)
            self.staged[aside] = self.folder / new.name

    def swap(self) -> None:
        """Move the old content aside and the staged content into place. Raises OSError."""
        for old in [path for path in self.folder.iterdir() if path not in self.staged]:
            old.rename(self._aside())
        for aside, place in self.staged.items():
            aside.rename(place)

    def clean(self) -> None:
        """Delete what is aside."""
        for path in [path for path in self.folder.iterdir() if path.name.startswith(self.mark)]:
            if path.is_dir() and not path.is_symlink():
                remove_tree(path)
            else:
                path.unlink()

    def _aside(self) -> Path:
        return self.folder / f"{self.mark}{secrets.token_hex(8)}"
