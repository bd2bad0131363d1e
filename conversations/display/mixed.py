"""Words that mix scripts: a Cyrillic letter among Latin ones may look the same, and make another name or command.

Mixes are fine that languages write, as in UTS #39, "highly restrictive": Latin with Han and kana, with Han and
Bopomofo, or with Han and Hangul. A word is a run of letters, accents, digits and underscores.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from agents.engine.scripts import script_of

WORDS_MOST = 5
"""Words that are named; of more there is the number."""
WORD_MOST = 40
"""Characters of a word that are named."""

_WORD = re.compile("[\\w\u0300-\u036f]+")
_FINE = tuple(frozenset({"Latin", "Han", *more}) for more in (["Hiragana", "Katakana"], ["Bopomofo"], ["Hangul"]))


def mixed_words(texts: Iterable[str]) -> list[str]:
    """Return a sentence for each word of these texts that mixes scripts, for who decides. Takes linear time."""
    found: dict[str, Counter[str]] = {}
    for text in texts:
        for word in () if text.isascii() else dict.fromkeys(_WORD.findall(text)):
            if not word.isascii() and _is_mixed(scripts := _scripts(word)):
                found[word] = scripts
    sentences = [_sentence(word, scripts) for word, scripts in list(found.items())[:WORDS_MOST]]
    rest = len(found) - len(sentences)
    return [*sentences, f"Not one script: {rest:,} more words mix scripts."] if rest else sentences


def _scripts(word: str) -> Counter[str]:
    """Count the letters of each script. A digit or an accent counts with its own, if it has one."""
    counted = Counter(map(script_of, word))
    return Counter({script: count for script, count in counted.items() if script not in ("", "Combining")})


def _is_mixed(scripts: Counter[str]) -> bool:
    return len(scripts) > 1 and not any(scripts.keys() <= fine for fine in _FINE)


def _sentence(word: str, scripts: Counter[str]) -> str:
    """Name a word and its scripts, and spell it, with the number of each letter that is not of the most common one."""
    shown = word[:WORD_MOST]
    names = [name for name, _ in scripts.most_common()]
    spelled = "".join(f"[U+{ord(each):04X}]" if script_of(each) in names[1:] else each for each in shown)
    more = "…" if len(word) > WORD_MOST else ""
    together = f"{', '.join(names[:-1])} and {names[-1]}"
    return f"Not one script: the word “{shown}{more}” mixes {together}. With the others as numbers: {spelled}{more}"
