"""Matching the lines of two texts in bounded time: texts come from agents, and may be built to be slow."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher

COMPARED_MOST = 2_000_000
"""Pairs of lines compared for one diff, about a second; the rest then counts as new."""


class LineMatcher(SequenceMatcher[str]):
    """difflib's matcher for lines. Lines that occur once on each side are matched first, then those between them."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__(None, old, new, autojunk=False)
        self.old, self.new, self.left = old, new, COMPARED_MOST

    def get_matching_blocks(self) -> list[Match]:
        """Return the matching blocks in order, none adjacent to another, and an empty one at the end."""
        blocks: list[Match] = []
        for found in self._found():
            last = blocks[-1] if blocks else Match(0, 0, 0)
            if (last.a + last.size, last.b + last.size) == (found.a, found.b):
                blocks[-1:] = [Match(last.a, last.b, last.size + found.size)]
            else:
                blocks.append(found)
        return [*blocks, Match(len(self.old), len(self.new), 0)]

    def _found(self) -> Iterator[Match]:
        i = j = 0
        for anchor in _in_order(self._once()):
            yield from self._between(i, anchor[0], j, anchor[1])
            yield Match(*anchor, 1)
            i, j = anchor[0] + 1, anchor[1] + 1
        yield from self._between(i, len(self.old), j, len(self.new))

    def _once(self) -> list[tuple[int, int]]:
        """Return the positions of lines that occur once in each text, in the order of the old one."""
        old, new = ({line for line, times in Counter(text).items() if times == 1} for text in (self.old, self.new))
        there = {line: number for number, line in enumerate(self.new)}
        both = old & new
        return [(number, there[line]) for number, line in enumerate(self.old) if line in both]

    def _between(self, i: int, last_i: int, j: int, last_j: int) -> Iterator[Match]:
        """Yield the matches in a gap: its beginning, its end, and what difflib finds between them at bounded cost."""
        head = alike(self.old[i:last_i], self.new[j:last_j])
        if head:
            yield Match(i, j, head)
        i, j = i + head, j + head
        tail = alike(self.old[i:last_i][::-1], self.new[j:last_j][::-1])
        between = _Bounded(self.old[i : last_i - tail], self.new[j : last_j - tail], self.left)
        for found in between.get_matching_blocks()[:-1]:
            yield Match(found.a + i, found.b + j, found.size)
        self.left = between.left
        if tail:
            yield Match(last_i - tail, last_j - tail, tail)


class _Bounded(SequenceMatcher[str]):
    """difflib's matcher, which finds nothing more once it has compared `left` pairs of lines."""

    def __init__(self, old: Sequence[str], new: Sequence[str], left: int) -> None:
        super().__init__(None, old, new, autojunk=False)
        self.old, self.times, self.left = old, Counter(new), left

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        """Return the longest match, or an empty one if comparing would take too long."""
        pairs = sum(1 + self.times[line] for line in self.old[alo:ahi])
        if pairs > self.left:
            return Match(alo, blo, 0)
        self.left -= pairs
        return super().find_longest_match(alo, ahi, blo, bhi)


def alike(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many items are the same at the beginning."""
    most = min(len(old), len(new))
    return next((number for number in range(most) if old[number] != new[number]), most)


def _in_order(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of pairs that ascends on the right; on the left all of them ascend."""
    lowest: list[int] = []  # the lowest right end of a run of each length
    ends: list[int] = []  # and its pair
    before: list[int] = []  # the pair before each in its run
    for number, (_, right) in enumerate(pairs):
        length = bisect_left(lowest, right)
        before.append(ends[length - 1] if length else -1)
        lowest[length : length + 1] = [right]
        ends[length : length + 1] = [number]
    run, at = [], ends[-1] if ends else -1
    while at >= 0:
        run.append(pairs[at])
        at = before[at]
    return run[::-1]
