"""What tools and policies under test find outside: a folder of their own, and files that are kept in memory."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from agents.engine.interfaces.services import PlainServices


class SavedFile(NamedTuple):
    """A file that was given to people."""

    name: str
    content: bytes
    media_type: str
    summary: str


@dataclass
class TrialServices(PlainServices):
    """Services for a trial. `folder` is the workspace; without one, a temporary folder, for as long as these last."""

    user: int = 1
    prompt: int = 1
    folder: Path | None = None
    ahead: timedelta = timedelta()
    files: list[SavedFile] = field(default_factory=list)

    def now(self) -> datetime:
        """Return the time of the trial: `ahead` of the real one by as much as it was put forward."""
        return super().now() + self.ahead

    def workspace(self) -> Path:
        """Return the workspace."""
        if self.folder is None:
            self.folder = Path(tempfile.mkdtemp(prefix="agentsite-"))
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        return self.folder

    async def save_file(self, name: str, content: bytes, media_type: str, summary: str) -> int:
        """Keep the file in `files`; its id is its place there, from 1."""
        self.files.append(SavedFile(name, content, media_type, summary))
        return len(self.files)
