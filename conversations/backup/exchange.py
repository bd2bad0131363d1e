"""Having a folder hold something else: all of that is beside its place before the first thing is moved."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import Self

from conversations.files.workspaces import remove_tree


class Exchange:
    """`folder` is to hold what `content` holds, and nothing else; the folder itself stays, it may be a mount.

    Entering takes over `content`, which is what can fail for want of room. `take_place` only renames, within the
    folder, so it needs no rights to what it moves. What was there goes at the end.
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

    def take_place(self) -> None:
        """Put what was staged in its place. Raises OSError."""
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
