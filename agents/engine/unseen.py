"""Invisible and misleading characters. People are shown a mark, or the code point, in their place."""

from __future__ import annotations

import re

# Letters, marks and symbols by category, and yet invisible: Unicode's default ignorables, fillers, the Braille blank,
# and the selectors that only choose how another character is drawn.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


def is_unseen(character: str) -> bool:
    """Whether a character is invisible, or looks like another. A space is not. Callers handle tabs and line breaks."""
    return not character.isprintable() or bool(_BLANK.match(character))
