"""Truncation of output that may be endless: its beginning and its end are kept."""

from __future__ import annotations

from agents.plugins.shell.limits import OUTPUT


class TruncatedStream:
    """One stream of output. Its beginning is passed on at once; of what is too long, the end is kept."""

    def __init__(self, letter: bytes) -> None:
        self.letter = letter
        self.room = OUTPUT // 2
        self.tail = bytearray()
        self.left_out = 0

    def take(self, data: bytes) -> bytes:
        """Add `data`. Returns the part of it that is passed on now."""
        now, later = data[: self.room], data[self.room :]
        self.room -= len(now)
        self.tail += later
        if len(self.tail) > OUTPUT:  # twice what is kept: cutting copies, so it is done rarely
            self._cut()
        return now

    def rest(self) -> bytes:
        """Return what is passed on at the end of the stream."""
        self._cut()
        gap = f"\n[... {self.left_out:,} bytes left out ...]\n".encode() if self.left_out else b""
        return gap + bytes(self.tail)

    def _cut(self) -> None:
        beyond = max(len(self.tail) - OUTPUT // 2, 0)
        self.left_out += beyond
        del self.tail[:beyond]
