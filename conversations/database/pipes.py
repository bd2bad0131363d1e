"""Hints to drains on SQLite: each drain reads a named pipe in the data folder, and all are written to after a commit.

A socket would do the same, but its path may have 107 bytes at most. A pipe that nobody reads, because its drain was
killed, says so to whoever writes to it, and is removed.
"""

from __future__ import annotations

import errno
import os
import selectors
import uuid
from contextlib import suppress
from pathlib import Path

from django.conf import settings

READ_MOST = 65_536
"""How many bytes are read at once: as many as a pipe holds (pipe(7)). Any number of hints means one look."""


class Pipe:
    """A pipe of this process. Raises OSError if it cannot be made."""

    def __init__(self) -> None:
        folder = _folder()
        folder.mkdir(mode=0o700, exist_ok=True)
        self._path = folder / uuid.uuid4().hex
        unread = folder / f".{self._path.name}"  # until it is open, a hint would remove it
        os.mkfifo(unread)
        self._file = os.open(unread, os.O_RDWR | os.O_NONBLOCK)  # open for writing as well, it has no end
        try:
            unread.rename(self._path)
        except OSError:  # it is tried again and again
            os.close(self._file)
            unread.unlink(missing_ok=True)
            raise

    def wait(self, seconds: float) -> bool:
        """Return whether there were hints since the last call, after at most this time.

        Raises FileNotFoundError if somebody has removed the pipe.
        """
        if not os.fstat(self._file).st_nlink:
            raise FileNotFoundError(f"the pipe {self._path} was removed")
        with selectors.DefaultSelector() as selector:
            selector.register(self._file, selectors.EVENT_READ)
            heard = bool(selector.select(seconds))
        if heard:
            os.read(self._file, READ_MOST)
        return heard

    def close(self) -> None:
        """Close and remove it."""
        os.close(self._file)
        self._path.unlink(missing_ok=True)


def hint_pipes() -> None:
    """Tell every drain to look. Never waits, and raises no OSError: a hint may be lost."""
    for pipe in _folder().glob("[!.]*"):
        with suppress(OSError):
            _write(pipe)


def _write(pipe: Path) -> None:
    try:
        file = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO:  # its reader was killed
            pipe.unlink(missing_ok=True)
        return
    try:
        with suppress(BlockingIOError, BrokenPipeError):  # full of hints that were not read yet; or closed just now
            os.write(file, b"\n")
    finally:
        os.close(file)


def _folder() -> Path:
    return Path(settings.AGENTSITE_DATA) / "hints"
