"""Passages: the lines of documents that were read, chosen around what searches found, and what cites them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workflows.shipped.paths import in_workspace

AROUND = 6
"""Lines that are read before and after one that was found."""
TEXT_MOST = 2_500
"""Characters of one passage."""


@dataclass(frozen=True)
class Window:
    """Lines of a document that are worth reading, from `first` to `last`, counted from 1."""

    path: str
    first: int
    last: int


@dataclass(frozen=True)
class Passage:
    """Lines of a document as they were read, of which `first` is the number of the first one."""

    path: str
    first: int
    lines: tuple[str, ...]

    @classmethod
    def of(cls, read: Mapping[str, Any]) -> Passage:
        """Return the passage that `documents.read` returned."""
        return cls(read["path"], read["first"], tuple(read["text"].split("\n")))

    @property
    def last(self) -> int:
        """The number of its last line."""
        return self.first + len(self.lines) - 1

    def has(self, path: str, line: int) -> bool:
        """Whether this line of this document is in it."""
        return path == self.path and self.first <= line <= self.last

    def line(self, number: int) -> str:
        """Return the line with this number."""
        return self.lines[number - self.first]

    @property
    def text(self) -> str:
        """The passage as a model reads it: its path, and its lines with their numbers."""
        numbered = (f"{number}: {line}" for number, line in enumerate(self.lines, self.first))
        return "\n".join([f"--- {json.dumps(self.path, ensure_ascii=False)}", *numbered])


def windows(searches: Iterable[Sequence[Mapping[str, Any]]], read: Sequence[Passage], most: int) -> list[Window]:
    """Return what to read of what these searches found, and was not read: first what most of them found.

    Lines that stand close together are one window. No line is in two.
    """
    lines: dict[tuple[str, int], set[int]] = {}
    for number, found in enumerate(searches):
        for each in found:
            if not any(passage.has(each["path"], each["line"]) for passage in read):
                lines.setdefault((each["path"], each["line"]), set()).add(number)
    joined: list[tuple[Window, set[int]]] = []
    for (path, line), numbers in sorted(lines.items()):
        last = joined[-1][0] if joined else None
        if last and last.path == path and line - AROUND <= last.last + 1:
            joined[-1] = Window(path, last.first, line + AROUND), joined[-1][1] | numbers
        else:
            joined.append((Window(path, max(1, line - AROUND), line + AROUND), numbers))
    ranked = sorted(joined, key=lambda each: (-len(each[1]), each[0].path, each[0].first))
    return [window for window, _ in ranked[:most]]


def found_in(passages: Iterable[Passage], path: str, line: int) -> tuple[str, int, str] | None:
    """Return the place that is cited, as path, line and the line's text; None if that was not read."""
    try:
        path = in_workspace(path)
    except ValueError:
        return None
    for passage in passages:
        if passage.has(path, line):
            return path, line, passage.line(line)
    return None
