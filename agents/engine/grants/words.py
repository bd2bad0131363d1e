"""Places and values of an input in words, within a sentence. Agents choose both, so neither may read as more of it."""

from __future__ import annotations

import json
import re

from agents.engine.ledger import JSON

VALUE_MOST = 300
"""Characters of a value in words; the rest of a longer one is left out, and its length is said."""

_PLAIN = re.compile(r"[\w-]{1,100}")
"""A name that reads as one."""


def place_words(place: str, preview: str = "") -> str:
    """Return the place of a value in words: `path`, `item 2 of to`, `pieces in item 1 of lines`.

    `preview`: that of the tool. The arguments of a program are counted as on its card.
    """
    first, *rest = place.split(".")
    if preview == "program" and first == "argv" and len(rest) == 1 and rest[0].isdecimal():
        return f"argument {rest[0]}" if int(rest[0]) else "the program"
    words = _name(first)
    for part in rest:
        words = f"item {int(part) + 1} of {words}" if part.isdecimal() else f"{_name(part)} in {words}"
    return words


def value_words(value: JSON) -> str:
    """Return a value as people read it: a text in quotation marks, anything else as JSON.

    A text with such marks in it is given as JSON too: it must not look as if it ended before its end.
    """
    quoted = isinstance(value, str) and not set(value) & set("“”")
    text = str(value) if quoted else json.dumps(value, ensure_ascii=False)
    if len(text) > VALUE_MOST:
        cut = f"{text[:VALUE_MOST]}…"
        return f"{f'“{cut}”' if quoted else cut} ({len(text):,} characters)"
    return f"“{text}”" if quoted else text


def _name(part: str) -> str:
    """Return the name of a field, as it is in the input; in quotation marks if it could be read as words."""
    named = "" if part == "~3" else part.removeprefix("~2")
    named = named.replace("~1", ".").replace("~0", "~")
    return named if _PLAIN.fullmatch(named) else value_words(named)
