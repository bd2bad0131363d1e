"""The tool that summarizes the columns of a CSV file, so that the model need not read all of it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import chain

from pydantic import BaseModel, Field

from agents.categories import TABLES
from agents.engine.errors import ToolError
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.plugins.files.box import Box
from agents.plugins.show.figures import Cell, Table
from agents.plugins.show.tools import put_table
from agents.plugins.tables import dialect
from agents.plugins.tables.columns import Column, Numbers, parse_point_decimal

READ_MOST = 10 * 2**20
"""Bytes of a file: about a million cells, read in a few seconds."""
COLUMNS_MOST = 60
"""Columns that are summarized; with 150 characters each, all of them reach the model."""
CELLS_MOST = 1_000
"""Cells of the first line; a file with more is not a table that a person made, and perhaps not CSV at all."""
VALUES_MOST = 6
"""A text column with at most this many distinct values lists them."""
CUT = 40
"""Characters of a name or a value; longer ones are cut."""
PLAIN_MOST = Decimal("1e15")
"""From this number on, only the first digits are given."""


class CsvFile(BaseModel):
    """The input of `csv.summary`."""

    path: str = Field(min_length=1, description="A CSV file, relative to the workspace.")


@dataclass
class Summary:
    """The summary of a file."""

    delimiter: str
    headed: bool
    width: int
    """Cells of the first line."""
    columns: list[Column]
    """The first COLUMNS_MOST columns; nothing is kept of the others."""
    rows: int = 0
    ragged: int = 0
    """Rows with more or fewer cells than the first line."""


@tool(
    "csv.summary",
    risk=Risk.READ,
    category=TABLES,
    title="Summarize a CSV file",
    says=lambda asked: f"summarized {asked.path}",
)
def summarize(call: ToolCall[CsvFile]) -> str:
    """Summarize each column of a CSV file: its kind, how many cells are filled, smallest, largest, mean and total.

    The person sees the same as a table.
    """
    path = call.input.path
    content = Box(call.services.workspace()).read(path, READ_MOST)
    text, remark = dialect.decode(content, path)
    found = summary_of(text)
    if not found.columns:
        raise ToolError(f"{path!r} has no rows.", code="empty")
    put_table(call, _table(path, found))
    remarks = [remark] if remark else []
    if found.ragged:
        remarks.append(f"Rows with more or fewer cells than the first line: {found.ragged:,}")
    if found.width > COLUMNS_MOST:
        remarks.append(f"Only the first {COLUMNS_MOST} columns are summarized")
    return "\n".join([_size(path, found), *map(_describe, found.columns), *(f"[{each}.]" for each in remarks)])


def summary_of(text: str) -> Summary:
    """Read the rows once and summarize them. The first row is the header, unless it has a number or an empty cell.

    Raises ToolError if the first row has too many cells.
    """
    delimiter = dialect.detect_delimiter(text)
    rows = dialect.rows_of(text, delimiter)
    first = next(rows, [])
    width = len(first)
    if width > CELLS_MOST:
        raise ToolError(
            f"Its first row has {width:,} cells, and at most {CELLS_MOST:,} columns can be summarized: read the start"
            " of the file, then write a file with only the columns that you need, or with one row on each line.",
            code="too_many_columns",
        )
    headed = all(cell.strip() and parse_point_decimal(cell.strip()) is None for cell in first)
    heads = first if headed else [f"column {n}" for n in range(1, width + 1)]
    columns = [Column(" ".join(head.split()), continental=delimiter == ";") for head in heads[:COLUMNS_MOST]]
    found = Summary(delimiter, headed, width, columns)
    for row in rows if headed else chain([first] if first else [], rows):
        found.rows += 1
        found.ragged += len(row) != width
        for column, cell in zip(columns, row, strict=False):
            column.add(cell)
    for column in columns:
        column.empty = found.rows - column.filled  # counts the cells that a short row does not have, too
    return found


def _size(path: str, found: Summary) -> str:
    where = " below the header" if found.headed else ", no header"
    delimiter = "tabs" if found.delimiter == "\t" else repr(found.delimiter)
    return f"{path}: {_rows(found)}{where}; {found.width} columns, separated by {delimiter}."


def _rows(found: Summary) -> str:
    return "1 row" if found.rows == 1 else f"{found.rows:,} rows"


def _describe(column: Column) -> str:
    """Return one line about a column, for the model."""
    line = f"{_cut(column.name)}: {column.kind}, {column.filled:,} filled"
    if column.empty:
        line += f", {column.empty:,} empty"
    if column.kind == "mixed":
        line += f", {column.numbers.count:,} of them numbers"
    low, high, mean, total = _figures(column)
    if low:
        line += f", {low} to {high}"
    if mean:
        line += f", mean {mean}, total {total}"
    if column.kind == "text":
        line += f", {column.distinct} distinct"
        if len(column.seen) <= VALUES_MOST:
            line += f" ({', '.join(_cut(value) for value in sorted(column.seen))})"
    return line


def _table(path: str, found: Summary) -> Table:
    """Return the table that people see."""
    heads = ["Column", "Kind", "Filled", "Empty", "Smallest", "Largest", "Mean", "Total", "Distinct"]
    return Table(
        title=f"{path[-80:]}: {_rows(found)}, {found.width} columns",
        columns=heads,
        rows=[_row(column) for column in found.columns],
    )


def _row(column: Column) -> list[Cell]:
    return [_cut(column.name), column.kind, column.filled, column.empty, *_figures(column), column.distinct]


def _figures(column: Column) -> list[str | None]:
    """Return a column's smallest and largest value, mean and total, as far as it has them."""
    if column.kind == "date":
        return [str(column.first_day), str(column.last_day), None, None]
    if column.kind in ("number", "mixed"):
        numbers = column.numbers
        return [_digits(each) for each in (numbers.low, numbers.high, _mean(numbers), numbers.total)]
    return [None] * 4


def _mean(numbers: Numbers) -> Decimal:
    """Return the mean with as many decimals as the numbers have, at least two."""
    places = max(2, -int(numbers.total.as_tuple().exponent))
    mean = numbers.total / numbers.count
    return mean if abs(mean) >= PLAIN_MOST else round(mean, places)


def _digits(value: Decimal) -> str:
    """Return a number with separated thousands and its own decimals."""
    return f"{value:,f}" if abs(value) < PLAIN_MOST else f"{float(value):.6g}"


def _cut(text: str) -> str:
    """Return a name or a value on one line, cut to CUT characters."""
    line = " ".join(text.split())
    return line if len(line) <= CUT else f"{line[: CUT - 1]}\N{HORIZONTAL ELLIPSIS}"
