"""Faithful text, for people who decide about it: nothing in it can be hidden, reordered, or pushed out of view.

Characters that are invisible or change how others are shown (see agents.engine.unseen) become marks with their number;
long runs of blanks become a mark that counts them. Nothing is cut.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from heapq import merge
from html import unescape

from django.utils.html import conditional_escape, format_html, strip_tags
from django.utils.safestring import SafeString, mark_safe

from agents.engine.ledger import JSON
from agents.engine.unseen import unseen_at

SPACES_MOST = 24
"""Consecutive blanks that are shown as they are: enough for an indented line."""
BREAKS_MOST = 4
"""Consecutive line breaks that are shown as they are."""

_BLANKS = re.compile(rf"[ \t]+(?=\n|\Z)|[ \t]{{{SPACES_MOST + 1},}}|\n{{{BREAKS_MOST + 1},}}")
LINE_END = "\u21b5"
_LINE_END = re.compile(r"(?<!line breaks</span>)\n")
_TURNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> SafeString:
    """Return the text as HTML, with a mark in place of each invisible or misleading character."""
    return mark_safe("".join(map(conditional_escape, _pieces(text))))  # noqa: S308 - escaped, piece by piece


def argument(text: str) -> SafeString:
    """Return one argument of a program as HTML: also its blanks at both ends, its tabs and line breaks have marks."""
    if not text:
        return _mark("empty", "An argument of no characters")
    shown = str(visible(text))
    leading = len(shown) - len(shown.lstrip(" "))
    shown = "".join(_mark("\u2423", "at the beginning") for _ in range(leading)) + shown[leading:]
    shown = shown.replace("\t", _mark("\u21e5", "A tab"))
    return mark_safe(_LINE_END.sub(f"{_mark(LINE_END, 'A line break')}\n", shown))  # noqa: S308 - escaped by visible()


def in_line(text: str) -> SafeString:
    """Return the text as HTML within a sentence, with marks also for its tabs and line breaks."""
    shown = str(visible(text)).replace("\t", _mark("\u21e5", "A tab"))
    return mark_safe(_LINE_END.sub(_mark(LINE_END, "A line break"), shown))  # noqa: S308 - escaped by visible()


def plain(text: str) -> str:
    """Return the text as plain text, with each mark in brackets."""
    pieces = _pieces(_without_surrogates(text))
    return "".join(f"[{unescape(strip_tags(each))}]" if isinstance(each, SafeString) else each for each in pieces)


def inert(text: str) -> str:
    """Return the text with each character that changes the direction of text as its number in brackets."""
    return _TURNS.sub(lambda found: f"[{_number(found[0])}]", _without_surrogates(text))


def unseen(text: str) -> bool:
    """Whether the text has invisible or misleading characters; blanks and line breaks do not count."""
    return any(True for _ in unseen_at(text))


def spelled_out(value: JSON) -> str:
    """Return the value as indented JSON, with invisible characters escaped."""
    told = json.dumps(value, ensure_ascii=False, indent=2)
    pieces, end = [], 0
    for position in unseen_at(told):
        pieces += [told[end:position], json.dumps(told[position])[1:-1]]
        end = position + 1
    return "".join([*pieces, told[end:]])


def first_line(text: str, most: int = 120) -> str:
    """Return the beginning of a text, for lists in which nothing is decided: one line, cut with an ellipsis."""
    line = text.strip().partition("\n")[0].rstrip()
    if line == text.strip() and len(line) <= most:
        return line
    cut = line if len(line) <= most else line[:most].rpartition(" ")[0] or line[:most]
    return f"{cut.rstrip()} \u2026"


def _pieces(text: str) -> Iterator[str]:
    end = 0
    for start, stop in merge(map(re.Match.span, _BLANKS.finditer(text)), ((at, at + 1) for at in unseen_at(text))):
        yield text[end:start]
        yield _marked(text[start:stop])
        end = stop - (text[start] == "\n")  # the last of many line breaks still ends the line
    yield text[end:]


def _marked(found: str) -> SafeString:
    """Return the mark for blanks, or for one character that is not shown as it is."""
    if len(found) > SPACES_MOST and found[0] in " \t":
        return _mark(f"{len(found):,} blanks")
    if found[0] == "\n":
        return _mark(f"{len(found):,} line breaks")
    if found[0] in " \t":  # trailing, where nobody would see it
        return _mark(
            "".join("\u2423" if blank == " " else "\u21e5" for blank in found), f"{len(found)} at the line's end"
        )
    return _named(found)


@lru_cache(maxsize=1000)
def _named(character: str) -> SafeString:
    """Return the mark of one character. Cached: a text may consist of nothing else, and marks are slow to make."""
    return _mark(_number(character), unicodedata.name(character, "a character that cannot be seen"))


def _mark(text: str, title: str = "") -> SafeString:
    return format_html(
        '<span class="esc" title="{}">{}</span>', title or "Counted, because so many would push the rest away", text
    )


def _number(character: str) -> str:
    return f"U+{ord(character):04X}"


def blanks(part: str) -> str:
    """Return a run of blanks as HTML: as it is, or a mark that counts it."""
    return part if len(part) <= SPACES_MOST else counted(f"{len(part):,} blanks")


def counted(words: str) -> SafeString:
    """Return the mark in place of something that is repeated too often."""
    return _mark(words)


def _without_surrogates(text: str) -> str:
    """Replace surrogates, which JSON can express and UTF-8 cannot, by the replacement character."""
    return text.encode("utf-8", "replace").decode() if any("\ud800" <= c <= "\udfff" for c in text) else text
