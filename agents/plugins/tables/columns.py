"""Statistics of one column of a table: its kind, its extremes and the number of distinct values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Literal

DISTINCT_MOST = 10_000
"""Distinct texts of a column that are kept in memory to be counted."""
NUMBER_LONGEST = 40
"""Characters of a number; a longer run of digits is an identifier."""

Kind = Literal["number", "date", "text", "mixed", "empty"]

_POINT = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d{1,2})?")
_COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?")


def parse_point_decimal(text: str) -> Decimal | None:
    """Return the number in `text`, written as in English: 1,234.5. None if it is not one."""
    fits = len(text) <= NUMBER_LONGEST and _POINT.fullmatch(text)
    return Decimal(text.replace(",", "")) if fits else None


def parse_comma_decimal(text: str) -> Decimal | None:
    """Return the number in `text`, written as in much of Europe: 1.234,5. None if it is not one."""
    fits = len(text) <= NUMBER_LONGEST and _COMMA.fullmatch(text)
    return Decimal(text.replace(".", "").replace(",", ".")) if fits else None


@dataclass
class Numbers:
    """The numbers among the cells of a column, parsed in one of the two notations."""

    parse: Callable[[str], Decimal | None]
    count: int = 0
    total: Decimal = Decimal(0)
    low: Decimal = Decimal(0)
    high: Decimal = Decimal(0)

    def add(self, text: str) -> None:
        """Add a cell, if it is a number."""
        value = self.parse(text)
        if value is None:
            return
        self.low = min(self.low, value) if self.count else value
        self.high = max(self.high, value) if self.count else value
        self.total += value
        self.count += 1


@dataclass
class Column:
    """A column whose cells are added one by one. `continental`: if both notations fit, a comma is decimal."""

    name: str
    continental: bool = False
    filled: int = 0
    empty: int = 0
    seen: set[str] = field(default_factory=set)
    first_day: date | None = None
    last_day: date | None = None
    days: int = 0
    _notations: tuple[Numbers, Numbers] = field(
        default_factory=lambda: (Numbers(parse_point_decimal), Numbers(parse_comma_decimal))
    )

    def add(self, cell: str) -> None:
        """Add a cell. Empty cells are not counted: rows may be too short to have them."""
        text = cell.strip()
        if not text:
            return
        self.filled += 1
        if len(self.seen) < DISTINCT_MOST:
            self.seen.add(text)
        for numbers in self._notations:
            numbers.add(text)
        self._add_day(text)

    def _add_day(self, text: str) -> None:
        try:
            day = date.fromisoformat(text[:10]) if len(text) >= 10 and text[4] == text[7] == "-" else None
        except ValueError:
            return
        if day:
            self.first_day = min(self.first_day or day, day)
            self.last_day = max(self.last_day or day, day)
            self.days += 1

    @property
    def numbers(self) -> Numbers:
        """The numbers in the notation that fits the most cells."""
        point, comma = self._notations
        return comma if comma.count > point.count or (comma.count == point.count and self.continental) else point

    @property
    def kind(self) -> Kind:
        """The kind of all its cells; `mixed` if at least half of them, but not all, are numbers."""
        if not self.filled:
            return "empty"
        if self.days == self.filled:
            return "date"
        if self.numbers.count == self.filled:
            return "number"
        return "mixed" if self.numbers.count * 2 >= self.filled else "text"

    @property
    def distinct(self) -> str:
        """The number of distinct values, as far as they were counted."""
        return f"{DISTINCT_MOST:,} or more" if len(self.seen) == DISTINCT_MOST else f"{len(self.seen):,}"
