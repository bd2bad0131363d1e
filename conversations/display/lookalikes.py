"""Characters that look like ASCII and are not: another slash, dot or dash in a path, an address or a command.

A token is a run of ASCII and of what looks like it. The table has the confusables of UTS #39 for the punctuation that
means something there; letters and digits of mathematics look like ASCII, too. What people write stays quiet: a dash
between blanks or numbers, an apostrophe, punctuation of Chinese and Japanese beside their own characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

TOKENS_MOST = 5
"""Tokens that are named; of more there is the number."""
AROUND = 20
"""Characters of a token that are shown before and after the first look-alike."""

_LOOKS = {
    "/": "\u2044\u2215\u29f8\u2571\u1735\u2cc6\uff0f",
    "\\": "\u2216\u29f5\u29f9\ufe68\uff3c",
    "-": "\u02d7\u2010\u2011\u2012\u2013\u2043\u2212\u2796\u2cba\ufe58\ufe63\uff0d",
    ".": "\u2024\u0701\u0702\u06d4\ua4f8\ufe52\uff0e\u3002\uff61",
    "..": "\u2025",
    ":": "\u0589\u05c3\u0703\u0704\u02d0\u2236\ua789\ufe13\ufe30\ufe55\uff1a",
    ";": "\ufe14\ufe54\uff1b",
    ",": "\u201a\u060d\ufe10\ufe50\uff0c",
    "~": "\u02dc\u2053\u223c\uff5e",
    "*": "\u066d\u204e\u2217\ufe61\uff0a",
    "|": "\u01c0\u2223\u2758\uff5c\uffe8",
    "&": "\ufe60\uff06",
    "$": "\ufe69\uff04",
    "`": "\u02cb\u2035\uff40",
    "'": "\uff07",
    '"': "\uff02",
    "=": "\u30a0\u2e40\ua78a\ufe66\uff1d",
    "<": "\u02c2\u2039\u276e\ufe64\uff1c",
    ">": "\u02c3\u203a\u276f\ufe65\uff1e",
    "@": "\ufe6b\uff20",
    "#": "\ufe5f\uff03",
    "%": "\u066a\ufe6a\uff05",
    "+": "\u16ed\u2795\ufe62\uff0b",
    "?": "\ufe16\ufe56\uff1f",
    "!": "\u01c3\ufe15\ufe57\uff01",
    "^": "\u02c4\u02c6\uff3e",
    "_": "\ufe4d\ufe4e\ufe4f\uff3f",
    "(": "\u2768\u2772\u3014\ufd3e\ufe59\uff08",
    ")": "\u2769\u2773\u3015\ufd3f\ufe5a\uff09",
    "[": "\uff3b",
    "]": "\uff3d",
    "{": "\u2774\ufe5b\uff5b",
    "}": "\u2775\ufe5c\uff5d",
}
LOOKS_LIKE = {other: ascii for ascii, others in _LOOKS.items() for other in others}
"""The ASCII that a character looks like."""

_SENTENCE = set(
    "\u3002\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\uff61"
)  # of Chinese and Japanese, also at English words
_NEAR = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/\\._~:@=$*|-")
"""Neighbours that a look-alike has in a path, an address or an option."""
_RUN = re.compile(rf"[{''.join(LOOKS_LIKE)}]+")
_MATHEMATICAL = re.compile("[\U0001d400-\U0001d7ff]")
_TOKEN = re.compile(rf"[!-~°µ€£±{''.join(LOOKS_LIKE)}\U0001d400-\U0001d7ff]+")  # other writing is a blank to it
_NUMBER = r"[$€£]?\d+(?:[.,:]\d+)*"
_NUMBERS = re.compile(  # a range, a fraction or a time, with a unit
    rf"[(\[\"']*[±\u2212\u2013]?{_NUMBER}(?:[\u2010-\u2013\u2212\u2044\u2236\uff0c\uff5e]{_NUMBER})*"
    r"[A-Za-zµ°%]{0,5}[)\]\"'.,:;!?]*",
    re.ASCII,
)
_NUMBERS_MOST = 40
"""Characters of a token that may be numbers."""


def lookalikes(texts: Iterable[str]) -> list[str]:
    """Return a sentence for each token of these texts with look-alikes, for who decides. Takes linear time."""
    found: dict[str, str] = {}
    for text in texts:
        for token in () if text.isascii() else dict.fromkeys(_TOKEN.findall(text)):
            if not token.isascii() and (places := _places(token)):
                found[token] = _sentence(token, places)
    sentences = list(found.values())[:TOKENS_MOST]
    rest = len(found) - len(sentences)
    return [*sentences, f"Not what it looks like: {rest:,} more words with look-alikes."] if rest else sentences


def _places(token: str) -> dict[int, str]:
    """Return what stands there to the eye, by the position of each look-alike of a token."""
    if len(token) <= _NUMBERS_MOST and _NUMBERS.fullmatch(token):
        return {}
    return dict(_looks(token))


def _looks(token: str) -> Iterator[tuple[int, str]]:
    for found in _MATHEMATICAL.finditer(token):
        yield found.start(), unicodedata.normalize("NFKC", found[0])
    for run in _RUN.finditer(token):
        near = token[run.start() - 1 : run.start()] in _NEAR, token[run.end() : run.end() + 1] in _NEAR
        if all(near) if _SENTENCE.issuperset(run[0]) else any(near):
            yield from ((place, LOOKS_LIKE[token[place]]) for place in range(*run.span()))


def _sentence(token: str, places: dict[int, str]) -> str:
    """Name a token and what it looks like, and spell it with the number of each look-alike."""
    first = min(places)
    start, end = max(0, first - AROUND), min(len(token), first + AROUND)
    spelled = "".join(
        f"[U+{ord(token[place]):04X}]" if place in places else token[place] for place in range(start, end)
    )
    before, after = "…" * (start > 0), "…" * (end < len(token))
    looks = " ".join(dict.fromkeys(places[place] for place in range(start, end) if place in places))
    return (
        f"Not what it looks like: “{before}{token[start:end]}{after}” has other characters that look like {looks}"
        f" With their numbers: {before}{spelled}{after}"
    )
