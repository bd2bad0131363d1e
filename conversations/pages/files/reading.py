"""Reading the beginning of a file: never more than is shown, whatever the size of the file."""

from __future__ import annotations

from dataclasses import dataclass

from agents.engine.errors import ToolError
from agents.plugins.tables.dialect import decode
from conversations.models import File

_CONTINUED, _LEADING = 0x80, 0xC0
"""From which on a byte of UTF-8 continues a character, and from which on it begins one of several bytes."""


class Unreadable(Exception):
    """The content of a file cannot be read: it is gone, or the storage refuses it."""


class Binary(Exception):
    """The content of a file is not text."""


@dataclass(frozen=True)
class Beginning:
    """The first bytes of a file. `cut`: whether the file goes on after them."""

    content: bytes
    cut: bool

    def upto(self, most: int) -> Beginning:
        """Return the first `most` bytes of this."""
        return Beginning(self.content[:most], self.cut or len(self.content) > most)


@dataclass(frozen=True)
class Text:
    """Decoded text: whole lines if it was cut and has several. `remark` says if its encoding had to be guessed."""

    text: str
    remark: str


def read_beginning(file: File, most: int) -> Beginning:
    """Read up to `most` bytes of a file. Raises Unreadable."""
    try:
        with file.content.open("rb") as stream:
            read = stream.read(most + 1)
    except (OSError, ValueError) as error:  # ValueError: the row names no content
        raise Unreadable from error
    return Beginning(read[:most], len(read) > most)


def decode_text(read: Beginning) -> Text:
    """Decode the beginning of a text file: UTF-8, UTF-16 with its mark, or else Windows-1252. Raises Binary."""
    try:
        text, remark = decode(_whole_characters(read.content) if read.cut else read.content, "")
    except ToolError as error:
        raise Binary from error
    lines_end = text.rfind("\n") + 1
    return Text(text[:lines_end] if read.cut and lines_end else text, remark)


def _whole_characters(content: bytes) -> bytes:
    """Return UTF-8 without the character at its end that may have been cut."""
    for back in range(1, min(4, len(content)) + 1):
        if content[-back] >= _LEADING:
            return content[:-back]
        if content[-back] < _CONTINUED:
            break
    return content
