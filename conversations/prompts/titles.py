"""Titles: making a conversation's title from its first message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from urllib.parse import urlsplit

LONG = 60
"""Maximum length of a generated title, in characters: a list shows about half of them."""
LINE_MOST, LINES_MOST = 500, 20
"""Characters of a line, and lines of prose, that are examined: the patterns below can take quadratic time."""

_FENCE = re.compile(r"^\s*(```+|~~~+).*$")
_MARKS = re.compile(r"^\s*(?:#{1,6}\s+|>\s?|[-*+]\s+(?:\[[ xX]\]\s+)?|\d{1,3}[.)]\s+)+|^\s*(?:[-*_]\s*){3,}$")
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\s]*\)")
_URL = re.compile(r"\bhttps?://[^\s<>\"')\]]+")
_EMPHASIS = re.compile(r"(\*\*|~~|`+)(?=\S)(.+?)(?<=\S)\1")
_NAME = r"(?:\s+(?:all|everyone|everybody|there|again|agent|team))?"
_POLITE = re.compile(
    rf"^(?:(?:hi|hello|hey|hallo|dear agent|good (?:morning|afternoon|evening|day)){_NAME}(?=[\s,.!:;])"
    r"|(?:could|can|would|will) you(?: please| kindly)?(?=\s)|(?:please|kindly)(?=[\s,:])"
    r"|i(?:'d| would) like you to(?=\s)|i(?: want| need) you to(?=\s))[\s,.!:;\u2013\u2014-]*",
    re.IGNORECASE,
)
_END = re.compile(r"(?<=[^\s.][.!?])\s+(?=\S)")
_SHORTENED = ("e.g.", "i.e.", "etc.", "vs.", "no.", "nr.", "dr.", "mr.", "mrs.", "ms.", "st.", "z.b.", "d.h.")


def title_from(text: str) -> str:
    """Return the message's first sentence, without greeting, Markdown and the tail of long addresses.

    Never empty: a message that is only a greeting or code gives its first words.
    """
    lines = [_one_line(line) for line in islice(_prose(text), LINES_MOST)]
    said = (_first_sentence(_direct(line)) for line in lines)
    title = next((each for each in said if any(map(str.isalnum, each))), "")
    return _cut(title or next(filter(None, lines), "") or " ".join(text.split()) or "Untitled")


def _prose(text: str) -> Iterator[str]:
    """Yield the lines outside of fenced code; if there are none, the lines of the code."""
    inside, code, found = "", [], False
    for whole in text.splitlines():
        line = whole[:LINE_MOST]
        fence = _FENCE.match(line)
        if fence and (not inside or fence[1].startswith(inside)):
            inside = "" if inside else fence[1]
        elif inside:
            code.append(line)
        elif line.strip():
            found = True
            yield line
    if not found:
        yield from code


def _one_line(line: str) -> str:
    line = _LINK.sub(r"\1", _MARKS.sub("", line))
    line = _URL.sub(lambda found: _address(found[0]), line)
    for _ in range(2):  # emphasis may be nested: **`x`**
        line = _EMPHASIS.sub(r"\2", line)
    return " ".join(line.split())


def _address(url: str) -> str:
    """Return the host of an address, with an ellipsis if there is more."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    rest = f"{parts.path}{parts.query}{parts.fragment}".strip("/")
    return parts.netloc.removeprefix("www.") + ("/\u2026" if rest else "")


def _direct(line: str) -> str:
    """Return the line without its polite opening; what follows then begins with a capital."""
    rest = line
    while (shorter := _POLITE.sub("", rest, count=1)) != rest:
        rest = shorter
    return rest[:1].upper() + rest[1:] if rest != line else line


def _first_sentence(line: str) -> str:
    for end in _END.finditer(line):
        sentence = line[: end.start()]
        if not sentence.lower().endswith(_SHORTENED):
            return sentence
    return line.rstrip(": ")


def _cut(title: str) -> str:
    """Shorten to LONG characters, at a word, with an ellipsis."""
    if len(title) <= LONG:
        return title
    return (title[:LONG].rpartition(" ")[0] or title[:LONG]).rstrip(" ,;:.\u2013-") + "\u2026"
