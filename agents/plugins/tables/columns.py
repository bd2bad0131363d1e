"""What one column of a table holds: its kind, its extremes, how many different values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Literal

DISTINCT_MOST = 10_000
"""Different texts that are kept to be counted."""
NUMBER_LONGEST = 40
"""Characters of a number; a longer run of digits is a name."""

Kind = Literal["number", "date", "text", "mixed", "empty"]

_POINT = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d{1,2})?")
_COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?")


def with_point(text: str) -> Decimal | None:
    """The number in `text` as English writes it, 1,234.5; None where it is none."""
    fits = len(text) <= NUMBER_LONGEST and _POINT.fullmatch(text)
    return Decimal(text.replace(",", "")) if fits else None


def with_comma(text: str) -> Decimal | None:
    """The number in `text` as much of Europe writes it, 1.234,5; None where it is none."""
    fits = len(text) <= NUMBER_LONGEST and _COMMA.fullmatch(text)
    return Decimal(text.replace(".", "").replace(",", ".")) if fits else None


@dataclass
class Numbers:
    """The numbers among the cells, read in one of the two ways."""

    read: Callable[[str], Decimal | None]
    count: int = 0
    total: Decimal = Decimal(0)
    low: Decimal = Decimal(0)
    high: Decimal = Decimal(0)

    def add(self, text: str) -> None:
        """Take in a cell, if it is a number."""
        value = self.read(text)
        if value is None:
            return
        self.low = min(self.low, value) if self.count else value
        self.high = max(self.high, value) if self.count else value
        self.total += value
        self.count += 1


@dataclass
class Column:
    """A column while its cells are added one by one. `continental`: where both ways fit, a comma is decimal."""

    name: str
    continental: bool = False
    filled: int = 0
    empty: int = 0
    seen: set[str] = field(default_factory=set)
    first_day: date | None = None
    last_day: date | None = None
    days: int = 0
    _ways: tuple[Numbers, Numbers] = field(default_factory=lambda: (Numbers(with_point), Numbers(with_comma)))

    def add(self, cell: str) -> None:
        """Take in a cell. Empty ones are not counted: rows may be too short to have them."""
        text = cell.strip()
        if not text:
            return
        self.filled += 1
        if len(self.seen) < DISTINCT_MOST:
            self.seen.add(text)
        for way in self._ways:
            way.add(text)
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
        """The way that reads the most cells."""
        point, comma = self._ways
        return comma if comma.count > point.count or (comma.count == point.count and self.continental) else point

    @property
    def kind(self) -> Kind:
        """What all its cells are; `mixed` where at least half are numbers."""
        if not self.filled:
            return "empty"
        if self.days == self.filled:
            return "date"
        if self.numbers.count == self.filled:
            return "number"
        return "mixed" if self.numbers.count * 2 >= self.filled else "text"

    @property
    def distinct(self) -> str:
        """How many different values it has, as far as they were counted."""
        return f"{DISTINCT_MOST:,} or more" if len(self.seen) == DISTINCT_MOST else f"{len(self.seen):,}"
