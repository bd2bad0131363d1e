"""What is kept of output that may be endless: its beginning and its end."""

from __future__ import annotations

from agents.plugins.shell.limits import OUTPUT


class Kept:
    """One stream of output: what is passed on at once, and the end of what is too long."""

    def __init__(self, letter: bytes) -> None:
        self.letter = letter
        self.room = OUTPUT // 2
        self.tail = bytearray()
        self.left_out = 0

    def take(self, data: bytes) -> bytes:
        """The part of `data` that is passed on now."""
        now, later = data[: self.room], data[self.room :]
        self.room -= len(now)
        self.tail += later
        if len(self.tail) > OUTPUT:  # twice what is kept: cut seldom, for cutting copies
            self._cut()
        return now

    def rest(self) -> bytes:
        """What is passed on at the end."""
        self._cut()
        gap = f"\n[... {self.left_out:,} bytes left out ...]\n".encode() if self.left_out else b""
        return gap + bytes(self.tail)

    def _cut(self) -> None:
        beyond = max(len(self.tail) - OUTPUT // 2, 0)
        self.left_out += beyond
        del self.tail[:beyond]
