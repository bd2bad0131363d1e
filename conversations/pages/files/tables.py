"""Tables of CSV files: the first rows and columns, and how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.engine.errors import ToolError
from agents.plugins.tables.columns import parse_point_decimal
from agents.plugins.tables.dialect import detect_delimiter, rows_of
from conversations.display.cells import cell_class
from conversations.pages.drawing.table import are_numbers

ROWS_MOST = 200
"""Rows that are shown."""
COLUMNS_MOST = 30
"""Columns that are shown."""
CELL_MOST = 1_000
"""Characters of a cell that are shown."""


@dataclass(frozen=True)
class Cell:
    """A cell: its text, as it stands in the file, and its classes."""

    text: str
    classes: str


@dataclass(frozen=True)
class FileTable:
    """What is shown of a table. `heads` is empty if its first row is no heading.

    `count` and `width` are the rows and columns of what was read, without the heading; `cut`: the file goes on.
    """

    heads: list[Cell]
    rows: list[list[Cell]]
    count: int
    width: int
    cut: bool

    @property
    def notes(self) -> list[str]:
        """Sentences about what is left out."""
        notes = []
        if self.cut:
            notes.append(f"The first {_counted(len(self.rows), 'row')} of a larger table.")
        elif self.count > len(self.rows):
            notes.append(f"{len(self.rows):,} of {_counted(self.count, 'row')}.")
        if self.width > COLUMNS_MOST:
            notes.append(f"{COLUMNS_MOST} of {_counted(self.width, 'column')}.")
        return notes


def read_table(text: str, *, cut: bool) -> FileTable | None:
    """Read a CSV file, whose delimiter is detected. None if it has no rows, or is no table."""
    shown: list[list[str]] = []
    count = width = 0
    try:
        for row in rows_of(text, detect_delimiter(text)):
            count, width = count + 1, max(width, len(row))
            if len(shown) <= ROWS_MOST:  # one more than is shown: the first may be the heading
                shown.append([cell[:CELL_MOST] for cell in row[:COLUMNS_MOST]])
    except ToolError:
        return None
    if not shown:
        return None
    across = min(width, COLUMNS_MOST)
    headed = len(shown) > 1 and _is_heading(shown[0])
    heads, rows = (shown[0] if headed else []), shown[headed : ROWS_MOST + headed]
    numbers = [are_numbers([row[at] for row in rows if at < len(row) and row[at]]) for at in range(across)]
    return FileTable(
        _cells(heads, numbers) if headed else [], [_cells(row, numbers) for row in rows], count - headed, width, cut
    )


def _is_heading(row: Sequence[str]) -> bool:
    """Whether this first row names columns: no cell is empty, and none is a number."""
    return all(cell.strip() and parse_point_decimal(cell.strip()) is None for cell in row)


def _cells(row: Sequence[str], numbers: Sequence[bool]) -> list[Cell]:
    """Return a row as cells, one in each column; numbers are aligned to the right, with their heading."""
    texts = [*row, *[""] * (len(numbers) - len(row))]
    return [
        Cell(text, " ".join(filter(None, ["right" if number else "", cell_class(text)])))
        for text, number in zip(texts, numbers, strict=True)
    ]


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
