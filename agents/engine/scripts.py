"""The script that a letter belongs to, and the marks that belong on it, from the names that Unicode gives them."""

from __future__ import annotations

import unicodedata
from functools import lru_cache

_FORMS = ("FULLWIDTH ", "HALFWIDTH ", "CIRCLED ", "PARENTHESIZED ", "SMALL ")
_ALIASES = {
    "CJK": "Han",
    "IDEOGRAPHIC": "Han",
    "KANGXI": "Han",
    "ROMAN": "Roman numerals",  # Latin to Unicode, and the same as Latin letters to the eye
    "KELVIN": "Latin",
    "ANGSTROM": "Latin",
    "FEMININE": "Latin",
    "MASCULINE": "Latin",
    "OHM": "Greek",
}
_COMMON = ("MODIFIER", "MICRO", "KATAKANA-HIRAGANA", "DIGIT", "VULGAR", "IDEOGRAPHIC ITERATION")


@lru_cache(maxsize=5000)
def script_of(character: str) -> str:
    """Return the script of a letter, a mark or a digit, such as "Latin"; "" if it belongs to several, or to none.

    Python knows no scripts; the names of letters begin with theirs. Letters of mathematics, "MATHEMATICAL BOLD SMALL
    A", count as a script of their own: beside others they are look-alikes.
    """
    category = unicodedata.category(character)
    if category[0] not in "LM" and (category not in ("Nd", "Nl") or character.isascii()):
        return ""
    name = unicodedata.name(character, "")
    for form in _FORMS:
        name = name.removeprefix(form)
    if name.startswith(_COMMON):
        return ""
    first = name.partition(" ")[0].partition("-")[0]
    return _ALIASES.get(first, first.capitalize())
