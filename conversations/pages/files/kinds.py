"""Kinds of files: what a file is. Its content decides; its name only tells one kind of text from another."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import PurePosixPath

from conversations.pages.files.images import SVG, image_of


class Kind(StrEnum):
    """How a file is shown. Each has a template of this name; "nothing" is a sentence and the download."""

    IMAGE = "image"
    PDF = "pdf"
    TABLE = "table"
    MARKDOWN = "markdown"
    HTML = "html"
    TEXT = "text"
    NOTHING = "nothing"


_BY_SUFFIX = {
    ".csv": Kind.TABLE,
    ".tsv": Kind.TABLE,
    ".md": Kind.MARKDOWN,
    ".markdown": Kind.MARKDOWN,
    ".html": Kind.HTML,
    ".htm": Kind.HTML,
}
_BY_MEDIA_TYPE = {
    "text/csv": Kind.TABLE,
    "text/tab-separated-values": Kind.TABLE,
    "text/markdown": Kind.MARKDOWN,
    "text/html": Kind.HTML,
}
"""For names without a suffix."""
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_CONTROL = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f]")
"""Bytes that text in an old encoding does not have. Logs have escapes, \\x1b."""


def kind_of(head: bytes, name: str, media_type: str) -> Kind:
    """Return what a file is that begins with these bytes. A media type is a claim of whoever made the file."""
    if not head:
        return Kind.NOTHING
    image, suffix = image_of(head), PurePosixPath(name).suffix.lower()
    if image and (image.media_type != SVG or suffix == ".svg" or (not suffix and media_type == SVG)):
        return Kind.IMAGE
    if head.startswith(b"%PDF-"):
        return Kind.PDF
    if is_binary(head):
        return Kind.NOTHING
    return (_BY_SUFFIX if suffix else _BY_MEDIA_TYPE).get(suffix or media_type, Kind.TEXT)


def is_binary(head: bytes) -> bool:
    """Whether bytes are no text: they have zeros without a mark of UTF-16, or are controls in no known encoding."""
    if head.startswith(_UTF_16):
        return False
    if b"\0" in head:
        return True
    return bool(_CONTROL.search(head)) and not _is_utf_8(head)


def _is_utf_8(head: bytes) -> bool:
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"  # only the end of what was read is missing
    return True
