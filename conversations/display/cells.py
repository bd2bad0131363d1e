"""Cells of tables: which stay on one line, and which need room for their lines."""

from __future__ import annotations

import re
import unicodedata

WHOLE_MOST = 24
"""The maximum width of a cell that stays on one line, in letters. An East Asian character is two letters wide."""

_WORD = re.compile(r"[^\W\d_]{4}")


def cell_class(text: str) -> str:
    """Return the class of a cell: "whole" stays on one line, "long" has a minimum width, "" breaks at blanks.

    Whole is one short word, or a figure with its sign, unit or second half: "1918.4 / 0", "2,480.00 EUR".
    """
    if letters(text) > WHOLE_MOST:
        return "long"
    return "" if " " in text and _WORD.search(text) else "whole"


def letters(text: str) -> int:
    """Return the width of a text in letters. East Asian characters are twice as wide as others."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)
