"""A table as people read it: numbers to the right, each column with one kind of number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from agents.plugins.show.figures import Table
from conversations.pages.drawing.numerals import decimals, figures

GROUPED_FROM = 10_000
"""From here on a column's whole numbers are parted by thousands: a year is not."""
LONG = 12
"""Rows that are seen without scrolling: as many have room in its box."""
WORD_MOST = 24
"""Characters of a word that is kept in one piece."""

_NUMBER = re.compile(r"[-+\N{MINUS SIGN}]?[$€£]?\d[\d.,]*( ?[%€$£])?")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True)
class TableColumn:
    """A column's heading, its cells as texts, and whether these are numbers. None: a cell has nothing."""

    name: str
    numbers: bool
    cells: list[str | None]

    @property
    def whole(self) -> bool:
        """Whether each cell is one short word, such as a day or a number of an invoice, which no line should break."""
        return all(len(cell) <= WORD_MOST and " " not in cell for cell in self.cells if cell)


class Sheet:
    """A table that is drawn from what a tool was given. Raises pydantic's ValidationError where that is no table."""

    def __init__(self, data: dict[str, Any]) -> None:
        table = Table.model_validate(data)
        self.title = table.title
        self.columns = [_column(name, [row[at] for row in table.rows]) for at, name in enumerate(table.columns)]
        self.rows = [[(column, column.cells[at]) for column in self.columns] for at in range(len(table.rows))]

    @property
    def long(self) -> bool:
        """Whether some of its rows are only seen when it is scrolled."""
        return len(self.rows) > LONG


def _column(name: str, cells: list[Any]) -> TableColumn:
    there = [cell for cell in cells if cell is not None and cell != ""]
    if there and all(isinstance(cell, int | float) and not isinstance(cell, bool) for cell in there):
        told = iter(figures(there, grouped=any(abs(cell) >= GROUPED_FROM or decimals(cell) for cell in there)))
        return TableColumn(name, True, [None if cell in (None, "") else next(told) for cell in cells])
    texts = [_text(cell) for cell in cells]
    return TableColumn(name, _are_numbers([text for text in texts if text is not None]), texts)


def _are_numbers(texts: list[str]) -> bool:
    """Whether texts look like numbers, some of them perhaps like days."""
    looks = [bool(_NUMBER.fullmatch(text)) for text in texts]
    return any(looks) and all(look or _DAY.fullmatch(text) for look, text in zip(looks, texts, strict=True))


def _text(cell: Any) -> str | None:
    if cell is None or cell == "":
        return None
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return cell if isinstance(cell, str) else figures([cell], grouped=False)[0]
