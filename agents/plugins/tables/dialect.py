"""The dialect of a CSV file: its text encoding and its delimiter."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator
from itertools import islice
from statistics import mode

from agents.engine.errors import ToolError

DELIMITERS = ",;\t|"
SAMPLE_ROWS = 50
"""The number of rows from which the delimiter is detected."""


def decode(content: bytes, path: str) -> tuple[str, str]:
    """Return the text, and a remark if its encoding had to be guessed. Raises ToolError for binary data."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace"), ""
    if b"\0" in content:
        raise ToolError(f"{path!r} is not a CSV file: it contains binary data.", code="binary")
    try:
        return content.decode("utf-8-sig"), ""
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace"), "It is not UTF-8 and was read as Windows-1252"


def detect_delimiter(text: str) -> str:
    """Return the delimiter with which most rows have the same number of cells, two or more; a comma if none has."""
    return max(DELIMITERS, key=lambda delimiter: _fit(text, delimiter))


def rows_of(text: str, delimiter: str) -> Iterator[list[str]]:
    """Yield the rows that are not empty. Raises ToolError for a cell that is never closed."""
    reader = csv.reader(io.StringIO(text, newline=None), delimiter=delimiter)
    try:
        yield from (row for row in reader if any(row))
    except csv.Error as error:
        raise ToolError(f"Line {reader.line_num} cannot be read: {error}.", code="not_csv") from error


def _fit(text: str, delimiter: str) -> tuple[float, int]:
    """Return the share of the sample rows that have the usual number of cells, and that number."""
    try:
        widths = [len(row) for row in islice(rows_of(text, delimiter), SAMPLE_ROWS)]
    except ToolError:
        return 0.0, 1
    usual = mode(widths) if widths else 1
    return (widths.count(usual) / len(widths), usual) if usual > 1 else (0.0, 1)
