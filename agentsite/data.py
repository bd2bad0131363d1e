"""The data folder: database and key, files, workspaces, as three siblings that only their owner may enter.

A workspace is where an agent's commands run. Because it stands beside the folder of database and key and never above
or below it, no path that stays inside a workspace, nor its parent, reaches them.
"""

import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from agentsite.errors import CannotStart


@dataclass(frozen=True)
class DataFolder:
    """Where each kind of data lies."""

    private: Path  # the SQLite database and the secret key
    files: Path  # what people upload and agents make
    workspaces: Path  # one folder per conversation


def prepare(root: Path, workspaces: Path | None = None) -> DataFolder:
    """Make the folders below `root`, each 0700; `workspaces` may lie elsewhere, but not within database and key.

    A `root` or `workspaces` that somebody else made keeps its mode: it may be a mount, or hold other things.
    Raises CannotStart where one cannot be made or written.
    """
    folder = DataFolder(root / "data", root / "files", workspaces or root / "workspaces")
    if folder.workspaces.is_relative_to(folder.private) or folder.private.is_relative_to(folder.workspaces):
        raise CannotStart(
            f"AGENTSITE_WORKSPACES is {folder.workspaces}: choose a folder that neither holds nor lies in"
            f" {folder.private}, where database and key are."
        )
    for path in (root, folder.private, folder.files, folder.workspaces):
        _make(path, private=path.parent == root)
    return folder


def secret_key(folder: Path) -> str:
    """The key in `folder`/secret.key, made at the first call: 64 random characters behind a `~`, 0600.

    No sentence ends so: text on its way is held back where its end may begin a secret (conversations.worker.drafts).
    Two processes that start at once get the same key: the file appears whole or not at all, and only once.
    """
    file = folder / "secret.key"
    try:
        if not file.exists():
            _write_once(file, "~" + secrets.token_urlsafe(48))
        return file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise CannotStart(f"The secret key {file} cannot be used ({error.strerror}): make it readable.") from None


def _make(path: Path, *, private: bool) -> None:
    """Make the folder 0700 where it is missing; `private` closes one that is there already."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if private:
            path.chmod(0o700)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise CannotStart(
            f"The data folder {path} cannot be written ({error.strerror}): "
            "make it writable, or name another one in AGENTSITE_DATA."
        ) from None


def _write_once(file: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=file.parent)  # made 0600
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(temporary, file)
    except FileExistsError:
        pass  # another process was quicker: its key is the key
    finally:
        Path(temporary).unlink()
