"""Processes that die while they write a file into a workspace: once in a run, and where CRASH_WRITE says."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

from agents.plugins.files import box

_fill, _write = box._fill, box.Box.write


def arm(place: str) -> None:
    """From now on the first file that is written kills its process at this place.

    `empty`: it is open and has nothing yet. `half`: half of its bytes are in it. `whole`: all of them are on the disk,
    and it has no name yet. `named`: it has its name.
    """

    def die(here: str) -> None:
        if here == place and not (dead := Path(f"{os.environ['CRASH_EFFECTS']}.dead")).exists():
            dead.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def halves(content: Iterable[bytes]) -> Iterator[bytes]:
        for piece in content:
            die("empty")
            yield piece[: len(piece) // 2]
            die("half")
            yield piece[len(piece) // 2 :]

    def fill(descriptor: int, content: Iterable[bytes], mode: int) -> None:
        _fill(descriptor, halves(content), mode)
        die("whole")

    def write(self: box.Box, path: str, content: bytes) -> None:
        _write(self, path, content)
        die("named")

    box._fill, box.Box.write = fill, write  # type: ignore[method-assign]
