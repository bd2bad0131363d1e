"""Fitting tools into a limit: what each takes as a model reads it, how it is described more briefly, and what has room.

Pure functions of the tools. What each comes to is kept, because a round is prepared again and again.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from agents.engine.tools.tool import Tool, wire_name

SHORT = 100
"""The most characters of a description at its shortest."""
FILLER = re.compile(
    "an|and|are|as|at|be|by|can|do|for|from|have|how|if|in|into|is|it|me|my|not|of|on|or|please|so|that|the|them|then"
    "|there|these|this|to|us|want|we|what|when|which|will|with|you|your"
)
"""Words that say nothing of what a text is about."""
KEPT = 4096
"""Tools whose forms are kept. An app may make new ones each round, so that it must end somewhere."""


@dataclass(frozen=True, eq=False)
class Form:
    """A tool in one of its forms: with its whole description, or a shorter one. `bytes` is what it takes."""

    tool: Tool
    bytes: int


@lru_cache(maxsize=KEPT)
def forms(tool: Tool) -> tuple[Form, ...]:
    """Return the tool's forms, the fullest first: its whole description, its first paragraph, its first sentence.

    Those that would be no shorter than the one before are left out.
    """
    schema = _bytes_of(tool.schema)
    found = [Form(tool, _bytes_of([wire_name(tool.name), tool.description]) + schema)]
    for shorter in (first_paragraph(tool.description), first_sentence(tool.description)):
        if len(shorter) < len(found[-1].tool.description):
            other = replace(tool, description=shorter)
            found.append(Form(other, _bytes_of([wire_name(tool.name), shorter]) + schema))
    return tuple(found)


def learn(tools: Iterable[Tool]) -> None:
    """Work out what is kept of these tools, so that no round has to: it takes a millisecond or two for each."""
    for tool in tools:
        forms(tool)
        _words_of(tool)


def _bytes_of(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def form_at(tool: Tool, level: int) -> Form:
    """Return the form of this level, or the shortest if there are fewer: the description may have changed since."""
    return forms(tool)[min(level, len(forms(tool)) - 1)]


def first_paragraph(description: str) -> str:
    """Return the first paragraph of a description, in one line."""
    return " ".join(re.split(r"\n\s*\n", description.strip(), maxsplit=1)[0].split())


def first_sentence(description: str) -> str:
    """Return the first sentence of a description, cut after a word if it is longer than SHORT."""
    sentence = re.split(r"(?<=[.!?])\s+(?![a-z])", first_paragraph(description), maxsplit=1)[0]
    if len(sentence) <= SHORT:
        return sentence
    return f"{sentence[: SHORT - 1].rpartition(' ')[0] or sentence[: SHORT - 1]}…"


@lru_cache(maxsize=KEPT)
def _words_of(tool: Tool) -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of a tool's name and title, and those of its description."""
    return words_in(f"{tool.name} {tool.title}"), words_in(tool.description)


def words_in(text: str) -> frozenset[str]:
    """Return the words that say what a text is about: in lower case, and without the s of an English plural."""
    found = (word for word in re.findall(r"[^\W_]{2,}", text.lower()) if not FILLER.fullmatch(word))
    return frozenset(word[:-1] if len(word) > 3 and word.endswith("s") else word for word in found)


def scores(tools: Sequence[Tool], text: str | None) -> dict[str, float]:
    """Return how well each tool matches the words of a text, by name; 0 for one that has none of them.

    A word counts the more the fewer tools have it, and double in a name or title.
    """
    wanted = words_in(text or "")
    matches = {tool.name: [each & wanted for each in _words_of(tool)] for tool in tools}
    spread = Counter(word for named, told in matches.values() for word in named | told)
    worth = {word: math.log(1 + len(tools) / count) for word, count in spread.items()}
    return {
        name: 2 * math.fsum(worth[word] for word in named) + math.fsum(worth[word] for word in told - named)
        for name, (named, told) in matches.items()
    }


def ranked(tools: Sequence[Tool], text: str | None, pushed: Collection[str] = ()) -> list[Tool]:
    """Return the tools, the most important first: by their priority, by the words of the text, then the `pushed` ones.

    Those that are alike keep their order.
    """
    score = scores(tools, text)
    return sorted(tools, key=lambda tool: (-tool.priority, -score[tool.name], tool.name not in pushed))


def fit(sizes: Mapping[str, Sequence[int]], room: int, always: Collection[str] = ()) -> dict[str, int]:
    """Return the level of each of these that fits into `room` bytes, by name. The first has the best chances.

    `sizes` are the bytes of each at its levels, the fullest first. As many as possible fit at their shortest; the room
    that is left makes them fuller. Those in `always` fit whatever the room.
    """
    taken: dict[str, int] = {}
    for name in sorted(sizes, key=lambda name: name not in always):
        if name in always or sizes[name][-1] <= room:
            taken[name] = len(sizes[name]) - 1
            room -= sizes[name][-1]
    for name in [name for name in sizes if name in taken]:
        shortest = sizes[name][-1]
        level = next((at for at, size in enumerate(sizes[name]) if size - shortest <= room), taken[name])
        taken[name], room = level, room - sizes[name][level] + shortest
    return taken


def sizes_of(tools: Iterable[Tool]) -> dict[str, list[int]]:
    """Return the bytes of these tools at their levels, by name."""
    return {tool.name: [form.bytes for form in forms(tool)] for tool in tools}
