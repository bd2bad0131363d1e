"""Characters that nobody sees as what they are: people are shown a mark in their place, or their number."""

from __future__ import annotations

import re

# Letters, marks and symbols by category, and yet nothing is seen of them: Unicode's default ignorables, fillers, the
# blank of Braille, and the selectors that only choose how another character is drawn.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")


def is_unseen(character: str) -> bool:
    """Whether nothing, or something else, is seen of it. A blank is seen; of tabs and line breaks the caller knows."""
    return not character.isprintable() or bool(_BLANK.match(character))
