"""Texts as the demo model reads them: their sentences, and the words that say what they are about."""

from __future__ import annotations

import re
from collections.abc import Iterator

SET_APART = re.compile(
    r"^===== begin (?P<mark>[0-9a-f]{12}) =====\n(?P<text>.*)\n===== end (?P=mark) =====", re.S | re.M
)
"""Material in a request, set apart from what is asked (workflows.shipped.given)."""
MARKS = re.compile(r"^\s*(?:#{1,6}\s+|>\s*|[-*+]\s+|\d+[.)]\s+)+")
"""What Markdown puts before the text of a line."""
COMMON = frozenset(
    re.findall(
        r"\w+",
        """a about all also an and any are as at be been before between by can could did do does each for from had has
        have how i if in into is it its just many may more most much must my no not of on one only or our out own
        shall she should so some such than that the their them then there these they this those to under up us very was
        we were what when where which while who whom whose why will with would you your""",
    )
)
"""Words that say little by themselves."""


def material(said: str) -> str:
    """Return the material in a request; "" if there is none."""
    found = SET_APART.search(said)
    return found["text"] if found else ""


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs and the entries of lists of a text, each on one line. Headings are left out."""
    lines: list[str] = []
    for line in [*text.split("\n"), ""]:
        begins = bool(MARKS.match(line))
        if (begins or not line.strip()) and lines:
            yield " ".join(lines)
            lines = []
        if line.strip("#>*-+=_|` \t") and not line.lstrip().startswith("#"):
            lines.append(MARKS.sub("", line).strip())


def sentences(text: str) -> list[str]:
    """Return the sentences of a text."""
    parts = (part for each in paragraphs(text) for part in re.split(r"(?<=[.!?])\s+", each))
    return [part.strip() for part in parts if re.search(r"\w", part)]


def key_words(text: str) -> list[str]:
    """Return the words that say what a text is about, each once, in their order."""
    words = re.findall(r"[^\W_]+(?:['-][^\W_]+)*", text)
    telling = (word for word in words if word.casefold() not in COMMON and (len(word) > 2 or word.isdigit()))
    return list({word.casefold(): word for word in reversed([*telling])}.values())[::-1]


def stem(word: str) -> str:
    """Return a word without its commonest endings, so that "leases" is found by "lease"."""
    word = word.casefold()
    for ending in ("ing", "ies", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def shared(text: str, stems: set[str]) -> set[str]:
    """Return which of these stems a word of the text begins with."""
    words = [word.casefold() for word in re.findall(r"[^\W_]+", text)]
    return {each for each in stems if any(word.startswith(each) for word in words)}
