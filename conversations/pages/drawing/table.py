"""Tables: numbers aligned to the right, and formatted alike in each column."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from agents.plugins.show.figures import Table
from conversations.pages.drawing.numerals import decimals, figures

GROUPED_FROM = 10_000
"""From here on the whole numbers of a column are grouped by thousands; a year is not."""
LONG = 12
"""Rows that are visible without scrolling; the table's box has room for these."""

_NUMBER = re.compile(r"[-+\N{MINUS SIGN}]?[$€£]?\d[\d.,]*( ?[%€$£])?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class TableColumn:
    """A column: its heading, its cells as text, and whether they are numbers. None is an empty cell."""

    name: str
    numbers: bool
    cells: list[str | None]

    @property
    def align(self) -> str:
        """The class of its cells that aligns them."""
        return "r" if self.numbers else ""


class DrawnTable:
    """A table drawn from a tool's data. Raises pydantic's ValidationError if the data is not a table."""

    def __init__(self, data: dict[str, Any]) -> None:
        table = Table.model_validate(data)
        self.title = table.title
        self.columns = [_column(name, [row[at] for row in table.rows]) for at, name in enumerate(table.columns)]
        self.rows = [[(column, column.cells[at]) for column in self.columns] for at in range(len(table.rows))]

    @property
    def long(self) -> bool:
        """Whether some rows are visible only after scrolling."""
        return len(self.rows) > LONG


def _column(name: str, cells: list[Any]) -> TableColumn:
    there = [cell for cell in cells if cell is not None and cell != ""]
    if there and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in there):
        formatted = iter(figures(there, grouped=any(abs(cell) >= GROUPED_FROM or decimals(cell) for cell in there)))
        return TableColumn(name, True, [None if cell in (None, "") else next(formatted) for cell in cells])
    texts = [_text(cell) for cell in cells]
    return TableColumn(name, are_numbers([text for text in texts if text is not None]), texts)


def are_numbers(texts: list[str]) -> bool:
    """Whether texts look like numbers, possibly with some dates among them."""
    looks = [bool(_NUMBER.fullmatch(text)) for text in texts]
    return any(looks) and all(look or _DAY.fullmatch(text) for look, text in zip(looks, texts, strict=True))


def _text(cell: Any) -> str | None:
    if cell is None or cell == "":
        return None
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return cell if isinstance(cell, str) else figures([cell], grouped=False)[0]
