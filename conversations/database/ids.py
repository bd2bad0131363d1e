"""Row ids, parsed from URLs and forms."""

from __future__ import annotations

DIGITS_MOST = 18
"""Digits of an id that always fit into a column. With more, SQLite raises where PostgreSQL finds nothing."""


def row_id(text: str) -> int | None:
    """Return the id in this text; None if it is not one that a row can have."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= DIGITS_MOST else None


def row_ids(texts: list[str]) -> list[int]:
    """Return the ids in these texts, in order and without duplicates. Texts that are no id are left out."""
    return list(dict.fromkeys(number for text in texts if (number := row_id(text)) is not None))
