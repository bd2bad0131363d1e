"""The words that a search goes by: one tokenizer, for what is written down and for what is looked for.

Words are made plain (capitals, diacritics and forms of width do not count), those that say nothing are left out, and
the others lose their endings, by the language of the site. Chinese, Japanese, Korean, Thai and the like are not cut
into words: there, each two and each three characters that stand side by side are one.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version

from django.conf import settings

from agents.models.searched import WORD_MOST
from agents.search.languages import NO_LANGUAGE

TEXT_MOST, WRITTEN_MOST = 200_000, 5000
"""Characters of a text that are looked at, and words of it that are written down: the first ones."""
END_MOST, ASKED_MOST = 5000, 500
"""Characters at each end of what is searched for by that are looked at, and different words of each that count.

A question stands at the beginning or at the end of what somebody has pasted.
"""
TOKENIZER = 2
"""Raise it when the same text has other words than before: every site then writes its words anew."""

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)


class _Plain(dict[int, str | None]):
    """What `str.translate` makes of each character of a decomposed text: no diacritics, and blanks between words."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        kept = unicodedata.category(character)[0] in "LMN"
        self[code] = None if _is_diacritic(character) else character if kept else " "
        return self[code]


_PLAIN = _Plain()


def _is_diacritic(character: str) -> bool:
    """Whether a letter means the same without this mark: accents, the points of Hebrew and Arabic, and how it is drawn.

    The marks of Hindi, Thai and Japanese are letters, so they stay: their combining classes are others.
    """
    place, drawn = unicodedata.combining(character), unicodedata.name(character, "").startswith("VARIATION SELECTOR")
    return place >= 200 or 10 <= place <= 36 or drawn or unicodedata.category(character) == "Me"


def words(text: str) -> list[str]:
    """Return the words of a text, each once, in the order in which they first stand there: the first WRITTEN_MOST."""
    return _without_endings(dict.fromkeys(_parts(text[:TEXT_MOST])))[:WRITTEN_MOST]


def asked_words(text: str) -> list[str]:
    """Return the words to look for with a text, each once. Of a long text, those of its beginning and of its end."""
    ends = text if len(text) <= 2 * END_MOST else f"{text[:END_MOST]}\n{text[-END_MOST:]}"
    parts = list(dict.fromkeys(_parts(ends)))
    return _without_endings(parts if len(parts) <= 2 * ASKED_MOST else parts[:ASKED_MOST] + parts[-ASKED_MOST:])


def is_piece(word: str) -> bool:
    """Whether a word is a piece of a text without blanks, which may begin and end in the middle of words."""
    return bool(_UNSPACED.match(word))


def written_as() -> str:
    """Return what the words of a text depend on, besides the text: words that were written by another are of no use."""
    used = " ".join(f"{name} {version(name)}" for name in ("pystemmer", "stopwords"))
    return f"{settings.AGENTSITE_SEARCH_LANGUAGE}, {TOKENIZER}, {used}, Unicode {unicodedata.unidata_version}"


def _without_endings(parts: Iterable[str]) -> list[str]:
    """Return the words, each once, by the language of the site."""
    language: str = settings.AGENTSITE_SEARCH_LANGUAGE
    if language != NO_LANGUAGE:
        from Stemmer import Stemmer

        nothing = _say_nothing(language)
        # Made anew each time, which takes 20 microseconds: threads may not share one.
        parts = Stemmer(language, 0).stemWords([part for part in parts if part not in nothing])
    return list(dict.fromkeys(part[:WORD_MOST] for part in parts))


def _parts(text: str) -> Iterator[str]:
    """Yield the words as they stand in a text, made plain."""
    plain = unicodedata.normalize("NFKD", text).translate(_PLAIN).casefold()
    for part in unicodedata.normalize("NFC", plain).split():
        if part.isascii():
            yield part
            continue
        yield from (word for word in _UNSPACED.split(part) if any(map(str.isalnum, word)))
        for run in _UNSPACED.findall(part):
            yield from _side_by_side(run)


def _side_by_side(run: str) -> Iterator[str]:
    """Yield each two and each three characters of a run; one that stands alone as it is."""
    if len(run) == 1:
        yield run
    for at in range(len(run) - 1):
        yield run[at : at + 2]
        if at + 3 <= len(run):
            yield run[at : at + 3]


@cache
def _say_nothing(language: str) -> frozenset[str]:
    from stopwords import get_stopwords

    return frozenset(part for word in get_stopwords(language) for part in _parts(word))
