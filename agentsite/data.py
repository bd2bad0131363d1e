"""The data folder: database and key, files, and workspaces, in three folders that only their owner can enter.

A workspace is where an agent's commands run. It is beside the folder of the database and the key, never above or below
it. So no path inside a workspace, or inside its parent, reaches them.
"""

import os
import secrets
import tempfile
from dataclasses import dataclass
from pathlib import Path

from agentsite.errors import CannotStart


@dataclass(frozen=True)
class DataFolder:
    """The folders of the site's data."""

    private: Path  # the SQLite database and the secret key
    files: Path  # what people upload and agents make
    workspaces: Path  # one folder per conversation


def prepare(root: Path, workspaces: Path | None = None) -> DataFolder:
    """Create the folders below `root`, each with mode 0700. `workspaces` may be elsewhere, but not near the database.

    A `root` or `workspaces` that exists already keeps its mode: it may be a mount, or contain other things.
    Raises CannotStart if one cannot be created or written, or if workspaces and database would contain one another.
    """
    folder = DataFolder(root / "data", root / "files", workspaces or root / "workspaces")
    if folder.workspaces.is_relative_to(folder.private) or folder.private.is_relative_to(folder.workspaces):
        raise CannotStart(
            f"AGENTSITE_WORKSPACES is {folder.workspaces}: choose a folder that does not contain {folder.private} and"
            " is not inside it, because the database and the secret key are there."
        )
    for path in (root, folder.private, folder.files, folder.workspaces):
        _make(path, private=path.parent == root)
    return folder


def secret_key(folder: Path) -> str:
    """Return the key in `folder`/secret.key, created on the first call: `~` and 64 random characters, mode 0600.

    No sentence ends with `~`: streamed text is held back if its end may begin a secret (conversations.worker.drafts).
    Two processes that start at the same time get the same key: the file appears atomically, and only once.
    """
    file = folder / "secret.key"
    try:
        if not file.exists():
            _write_once(file, "~" + secrets.token_urlsafe(48))
        return file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise CannotStart(f"The secret key {file} cannot be read ({error.strerror}): make it readable.") from None


def _make(path: Path, *, private: bool) -> None:
    """Create the folder with mode 0700 if it is missing; `private` sets the mode of an existing one, too."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if private:
            path.chmod(0o700)
        tempfile.TemporaryFile(dir=path).close()
    except OSError as error:
        raise CannotStart(
            f"The data folder {path} cannot be written ({error.strerror}): "
            "make it writable, or set AGENTSITE_DATA to another one."
        ) from None


def _write_once(file: Path, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=file.parent)  # has mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(temporary, file)
    except FileExistsError:
        pass  # another process was faster: its key is used
    finally:
        Path(temporary).unlink()
