"""How a file says its rows: which letters, and what stands between two cells."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from itertools import islice
from statistics import mode

from agents.engine.errors import ToolError

DELIMITERS = ",;\t|"
LOOKED_AT = 50
"""Rows by which the delimiter is told."""


def text_of(content: bytes, path: str) -> tuple[str, str]:
    """The text, and a remark where its letters had to be guessed. Raises ToolError for what is no text."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace"), ""
    if b"\0" in content:
        raise ToolError(f"{path!r} is no CSV file: it has binary data.", code="binary")
    try:
        return content.decode("utf-8-sig"), ""
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace"), "It is not UTF-8 and was read as Windows-1252"


def delimiter_of(text: str) -> str:
    """The one by which the most rows have the same number of cells, and more than one; a comma where none does."""
    return max(DELIMITERS, key=lambda delimiter: _fit(text, delimiter))


def rows_of(text: str, delimiter: str) -> Iterator[list[str]]:
    """The rows that have anything in them. Raises ToolError where a cell does not end."""
    reader = csv.reader(io.StringIO(text, newline=None), delimiter=delimiter)
    try:
        yield from (row for row in reader if any(row))
    except csv.Error as error:
        raise ToolError(f"Line {reader.line_num} cannot be read: {error}.", code="not_csv") from error


def _fit(text: str, delimiter: str) -> tuple[float, int]:
    """The share of the first rows that have as many cells as most, and how many these are."""
    try:
        widths = [len(row) for row in islice(rows_of(text, delimiter), LOOKED_AT)]
    except ToolError:
        return 0.0, 1
    usual = mode(widths) if widths else 1
    return (widths.count(usual) / len(widths), usual) if usual > 1 else (0.0, 1)
