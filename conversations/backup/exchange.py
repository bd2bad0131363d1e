"""Replacing the content of a folder: everything new is staged in it before the first thing is moved."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import Self

from conversations.files.workspaces import remove_tree


class Exchange:
    """Replaces the content of `folder` with that of `content`. The folder itself stays, as it may be a mount.

    Entering the context stages `content`, which can fail if the disk is full. `swap` only renames within the folder, so
    it needs no permissions on what it moves. The old content is deleted on exit.
    """

    def __init__(self, folder: Path, content: Path) -> None:
        self.folder, self.content = folder, content
        self.mark = f".restore-{secrets.token_hex(8)}-"
        self.staged: list[tuple[Path, Path]] = []

    def __enter__(self) -> Self:
        try:
            for new in self.content.iterdir() if self.content.exists() else ():
                aside = self._aside()
                shutil.move(new, aside)
                self.staged.append((aside, self.folder / new.name))
        except BaseException:
            self._clean()
            raise
        return self

    def _aside(self) -> Path:
        return self.folder / f"{self.mark}{secrets.token_hex(8)}"

    def _ours(self) -> list[Path]:
        return [path for path in self.folder.iterdir() if path.name.startswith(self.mark)]

    def swap(self) -> None:
        """Move the old content aside and the staged content into place. Raises OSError."""
        ours = set(self._ours())
        for old in [path for path in self.folder.iterdir() if path not in ours]:
            old.rename(self._aside())
        for aside, place in self.staged:
            aside.rename(place)

    def __exit__(self, *_error: object) -> None:
        self._clean()

    def _clean(self) -> None:
        for path in self._ours():
            if path.is_dir() and not path.is_symlink():
                remove_tree(path)
            else:
                path.unlink()
