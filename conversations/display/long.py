"""Collapsing long texts, so that one message does not fill a page."""

from __future__ import annotations

from dataclasses import dataclass

LINES_MOST, CHARACTERS_MOST = 40, 4_000
"""Maximum size of a text that is shown in full."""


@dataclass(frozen=True)
class Long:
    """A collapsed text: its beginning, and its size in words."""

    head: str
    size: str


def collapsed(text: str) -> Long | None:
    """Return the collapsed form of a text with too many lines or characters; None for a shorter text."""
    lines = text.split("\n", LINES_MOST)
    if len(text) <= CHARACTERS_MOST and len(lines) <= LINES_MOST:
        return None
    head = "\n".join(lines[:LINES_MOST])
    if len(head) > CHARACTERS_MOST:
        head = head[:CHARACTERS_MOST].rpartition(" ")[0] or head[:CHARACTERS_MOST]
    breaks = text.count("\n")
    return Long(head.rstrip(), f"{breaks + 1:,} lines" if breaks >= LINES_MOST else f"{len(text):,} characters")
