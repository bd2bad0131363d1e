"""Matching the lines of two texts in bounded time: texts come from agents, and may be built to be slow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import Match, SequenceMatcher

COMPARED_MOST = 2_000_000
"""Pairs of lines compared for one diff, about a second; the rest then counts as new."""
COMMON = 100
"""A line that the new text has more often is not looked for: matches only grow over it, from other lines or an end."""


class LineMatcher(SequenceMatcher[str]):
    """difflib's matcher for lines, which finds little more once it has compared COMPARED_MOST pairs of them."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        times = {line: number for line, number in Counter(new).items() if number <= COMMON}
        super().__init__(lambda line: line not in times, old, new, autojunk=False)
        self.old, self.new, self.times, self.left = old, new, times, COMPARED_MOST

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        """Return the longest match; where there is none to look for, the lines with which both texts end, or begin."""
        old, new = self.old[alo:ahi], self.new[blo:bhi]
        pairs = sum(1 + self.times.get(line, 0) for line in old)
        if pairs <= self.left:
            self.left -= pairs
            found = super().find_longest_match(alo, ahi, blo, bhi)
            if found.size:
                return found
        if size := alike(old[::-1], new[::-1]):
            return Match(alo + len(old) - size, blo + len(new) - size, size)
        return Match(alo, blo, alike(old, new))


def alike(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many items are the same at the beginning."""
    most = min(len(old), len(new))
    return next((number for number in range(most) if old[number] != new[number]), most)
