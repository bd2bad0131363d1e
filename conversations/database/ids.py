"""The ids of rows as addresses and forms name them."""

from __future__ import annotations

DIGITS_MOST = 18
"""Of an id: so many always fit into a column; with more SQLite raises where PostgreSQL finds nothing."""


def row_id(text: str) -> int | None:
    """The id that a text names; None where it names none that a row can have."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MOST else None


def row_ids(texts: list[str]) -> list[int]:
    """The ids that these texts name, each once, in their order; texts that name none are left out."""
    return list(dict.fromkeys(number for text in texts if (number := row_id(text)) is not None))
