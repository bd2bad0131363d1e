"""Invisible and misleading characters. People are shown a mark, or the code point, in their place.

What is invisible is shown in its place everywhere: format characters, default ignorables, odd white space, private and
unassigned characters (unassigned as far as this Python knows). So are joiners and selectors, also in emoji: the parts
stay readable, and a joiner that joins nothing cannot hide. So are doubles: characters for which Unicode has another
that is the same, such as U+037E for the semicolon.

A combining mark stays as it is where a language writes it: on a letter with which it composes (NFC), on a letter of its
own script, or as an accent on a Latin, Greek or Cyrillic letter, never twice, and at most PILE_MOST on a letter. All
other marks are shown as their numbers.

So texts that differ in more than Unicode's canonical equivalence (NFC) differ in what is shown. Letters that only look
like others, and other look-alikes, are not found here: see conversations.display.mixed and lookalikes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from agents.engine.scripts import script_of

PILE_MOST = 4
"""The most marks on one letter, with those that it is composed of: pointed Hebrew has four, Vietnamese two."""
ACCENTS_MOST = 2
"""The most accents on the same side of a letter with which they do not compose."""

_OTHERS = re.compile(r"[^\x20-\x7e\n\t]+")
# Letters, marks and symbols by category, and yet invisible: Unicode's default ignorables, fillers and joiners, the
# blanks of Braille, of hieroglyphs and of music, the object replacement character, the selectors that only choose how
# another character is drawn, and the signs that mirror or damage a hieroglyph.
_BLANK = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u2d7f\u3164\ufe00-\ufe0f\uffa0\ufffc"
    "\U0001107f\U00011a99\U00013440-\U00013442\U00013447-\U00013455\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
# Accents that languages write, also on letters with which they do not compose. Without the dot above: on an i or a
# dotless i it makes another i. Without lines through and along letters.
_ACCENT = re.compile(
    "[\u0300-\u0304\u0306\u0308-\u030c\u030f\u0311\u0313\u0314\u031b\u0323-\u0329\u032d\u032e\u0330\u0331\u0342\u0345]"
)
_ACCENTED = {"Latin", "Greek", "Cyrillic"}
# Marks that stack the next letter under the last one; without a next letter they may be invisible.
_STACKERS = "\u1039\u17d2\u1a60\U00010a3f\U00011133\U000113d0\U0001193e\U00011a47\U00011f42"
_OVERLAY, _BELOW_TWO, _ABOVE_TWO = 1, 233, 234  # combining classes: through a letter, and over two of them


def unseen_at(text: str) -> Iterator[int]:
    """Yield the position of each character that is invisible, or changes how others look. Takes linear time.

    A character at the beginning of the text stands on nothing. Blanks, tabs and line breaks are left to the caller.
    """
    for run in _OTHERS.finditer(text):
        start = run.start()
        base, marks = text[start - 1] if start else "", ""
        for position, character in enumerate(run[0], start):
            if not _is_mark(character):
                shown = not _is_unseen(character)
                base, marks = character if shown else "", ""
            else:
                following = text[position + 1 : position + 2] if character in _STACKERS else ""
                shown = bool(base) and _belongs(base, marks, character, following)
                base, marks = base if shown else "", marks + character if shown else ""
            if not shown:
                yield position


@lru_cache(maxsize=5000)
def _is_unseen(character: str) -> bool:
    composed = unicodedata.normalize("NFC", character)
    double = len(composed) == 1 and composed != character  # U+037E is a semicolon to the eye, and not to a shell
    return double or not character.isprintable() or bool(_BLANK.match(character))


@lru_cache(maxsize=5000)
def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


@lru_cache(maxsize=5000)
def _belongs(base: str, marks: str, mark: str, following: str) -> bool:
    """Whether a language writes this mark on this letter, which has those marks already."""
    if unicodedata.category(base)[0] != "L" or _covers(mark):
        return False
    has = unicodedata.normalize("NFD", base + marks)
    if unicodedata.normalize("NFD", mark) in has or len(has) > PILE_MOST:
        return False
    if mark in _STACKERS:
        return following.isalpha() and script_of(following) == script_of(base) == script_of(mark)
    composes = len(unicodedata.normalize("NFC", base + marks + mark)) == 1
    return composes or script_of(base) == script_of(mark) or _accents(has, script_of(base), mark)


def _covers(mark: str) -> bool:
    """Whether a mark is nothing that can be seen, or goes through letters, round them, or over two."""
    across = unicodedata.combining(mark) in (_OVERLAY, _BELOW_TWO, _ABOVE_TWO)
    return across or unicodedata.category(mark) == "Me" or _is_unseen(mark)


def _accents(has: str, script: str, mark: str) -> bool:
    """Whether this mark is an accent for letters of this script, and there are not too many on its side."""
    beside = sum(unicodedata.combining(each) == unicodedata.combining(mark) for each in has)
    return script in _ACCENTED and bool(_ACCENT.match(mark)) and beside < ACCENTS_MOST
