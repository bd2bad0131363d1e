"""Previews of files: what is shown of one, and why something is not. Only the part that is shown is ever read."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from django.template.defaultfilters import filesizeformat

from conversations.database.erasable_cache import erasable
from conversations.models import File
from conversations.pages.files.images import BYTES_MOST, HEAD_BYTES, Image, image_of
from conversations.pages.files.kinds import Kind, kind_of
from conversations.pages.files.reading import Beginning, Binary, Text, Unreadable, decode_text, read_beginning
from conversations.pages.files.tables import FileTable, read_table

TEXT_BYTES = 200 * 1024
"""Bytes that are shown of text and Markdown."""
TABLE_BYTES = 2_000_000
"""Bytes of a table that are read, and in which its rows are counted."""
HTML_BYTES = 5_000_000
"""The largest HTML file that is shown. A part of one would be another page."""
LINE_MOST = 2_000
"""Characters of a line that scrolls sideways. Text with a longer one wraps."""

GONE = "The content of this file is no longer here."
EMPTY = "This file is empty."
BINARY = "This kind of file cannot be shown here. Download it to open it in another program."


@dataclass(frozen=True)
class Preview:
    """What is shown of a file. `notes` are sentences above it: what is left out, and what had to be guessed.

    `text` is that of Markdown and of plain text; `why` says why there is nothing to show. `gone`: there is no download
    either.
    """

    kind: Kind
    notes: list[str] = field(default_factory=list)
    image: Image | None = None
    table: FileTable | None = None
    text: str = ""
    why: str = ""
    gone: bool = False

    @property
    def template(self) -> str:
        """The template that shows it."""
        return f"conversations/files/{self.kind}.html"

    @property
    def wraps(self) -> bool:
        """Whether lines of this text are so long that nobody would scroll to their ends."""
        return any(len(line) > LINE_MOST for line in self.text.splitlines())


def preview_of(file: File) -> Preview:
    """Return the preview of a file."""
    try:
        return _preview(file, read_beginning(file, HEAD_BYTES))
    except Unreadable:
        return _nothing(GONE, gone=True)
    except Binary:  # further on than in its first bytes
        return _nothing(BINARY)


def _preview(file: File, head: Beginning) -> Preview:
    match kind_of(head.content, file.name, file.media_type):
        case Kind.NOTHING:
            return _nothing(BINARY if head.content else EMPTY)
        case Kind.IMAGE:
            return _image(file, head)
        case Kind.PDF | Kind.HTML as kind:  # which their frame reads
            return _too_large(file) if kind is Kind.HTML and file.size > HTML_BYTES else Preview(kind)
        case Kind.TABLE:
            return _table(read_beginning(file, TABLE_BYTES))
        case kind:
            return _text(kind, read_beginning(file, TEXT_BYTES))


def read_kind(file: File) -> Kind:
    """Return what a file is. Raises Unreadable."""
    return kind_of(read_beginning(file, HEAD_BYTES).content, file.name, file.media_type)


def read_html(file: File) -> str | None:
    """Return the text of an HTML file; None if it is too large, or no text further on. Raises Unreadable."""
    read = read_beginning(file, HTML_BYTES)
    try:
        return None if read.cut else decode_text(read).text
    except Binary:
        return None


def shown_image(file: File) -> Image | None:
    """Return which image a file is; None if it is none, is gone, or is too large to be shown."""
    if file.size > BYTES_MOST:
        return None
    try:
        return _shown_image(str(file.content.name), file.sha256, file.name, file.media_type)
    except Unreadable:
        return None


@erasable
@lru_cache(maxsize=2_000)
def _shown_image(content: str, sha256: str, name: str, media_type: str) -> Image | None:
    """Look at the first bytes of a content; `sha256`, its digest, is what the result is kept by. Raises Unreadable."""
    head = read_beginning(File(content=content), HEAD_BYTES).content
    image = image_of(head) if kind_of(head, name, media_type) is Kind.IMAGE else None
    return None if image and image.too_large else image


def _image(file: File, read: Beginning) -> Preview:
    image = image_of(read.content)
    if image is None or image.too_large or file.size > BYTES_MOST:
        return _too_large(file, image)
    return Preview(Kind.IMAGE, image=image)


def _table(read: Beginning) -> Preview:
    """Show a table; what is none, as the text that it is."""
    decoded = decode_text(read)
    table = read_table(decoded.text, cut=read.cut)
    if table is None:
        return _text(Kind.TEXT, read.upto(TEXT_BYTES), "It cannot be read as a table.")
    return Preview(Kind.TABLE, [*table.notes, *_remark(decoded)], table=table)


def _text(kind: Kind, read: Beginning, *notes: str) -> Preview:
    decoded = decode_text(read)
    left_out = [f"Only the first {_size(len(read.content))} are shown."] if read.cut else []
    return Preview(kind, [*notes, *left_out, *_remark(decoded)], text=decoded.text)


def _remark(decoded: Text) -> list[str]:
    return [f"{decoded.remark}."] if decoded.remark else []


def _too_large(file: File, image: Image | None = None) -> Preview:
    size = f"{image.width:,} × {image.height:,} pixels" if image and image.too_large else _size(file.size)  # noqa: RUF001
    return _nothing(f"This file is too large to be shown here ({size}). Download it to open it in another program.")


def _nothing(why: str, *, gone: bool = False) -> Preview:
    return Preview(Kind.NOTHING, why=why, gone=gone)


def _size(size: int) -> str:
    return str(filesizeformat(size))
