"""A change as a unified diff: what goes, what comes, and a few lines around it. Nothing that changes is left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from agents.engine.outputs.change import Change
from conversations.display.faithful import visible
from conversations.display.matching import LineMatcher, alike

CONTEXT = 3
"""Unchanged lines around what changes, as `diff -u` has them."""
KEPT = 16
"""Diffs that are kept: a page is rendered again and again while its turn goes on."""
ALIKE_LEAST = 0.4
"""Share of a changed line that must stay for its words to be marked: below it, everything would be."""

_WORDS = re.compile(r"\w+|\s+|.", re.DOTALL)


@dataclass(frozen=True)
class DiffRow:
    """One line. `kind` is same, add or del; `number` is its own in the text that it stands in.

    `marked` is where in `text` it differs from the line that it replaces, or that replaces it. `unended`: it is the
    text's last line, and no newline follows it.
    """

    kind: str
    number: int
    text: str
    unended: bool = False
    marked: tuple[int, int] = (0, 0)

    @property
    def sign(self) -> str:
        """What it is, for those who see no colour: a true minus, as wide as the plus."""
        return {"add": "+", "del": "\N{MINUS SIGN}"}.get(self.kind, "")

    @property
    def html(self) -> SafeString:
        """The line as it is: nothing in it hides. See conversations.display.faithful.visible."""
        start, end = self.marked
        if start == end:
            return visible(self.text)
        before, within = _unended(self.text[:start]), _unended(self.text[start:end], last=end == len(self.text))
        return format_html("{}<mark>{}</mark>{}", before, within, visible(self.text[end:]))


@dataclass(frozen=True)
class Hunk:
    """Lines that stand together. `head` says which lines of either text they are: "@@ -41,7 +41,9 @@"."""

    head: str
    rows: Sequence[DiffRow]


@dataclass(frozen=True)
class Diff:
    """A change as it is shown. `new`: there is no such text yet. No hunks: nothing changes, or what is new is empty."""

    path: str
    new: bool
    added: int
    removed: int
    hunks: Sequence[Hunk]


@lru_cache(maxsize=KEPT)
def diff(change: Change) -> Diff:
    """The change, line by line."""
    old, new = _lines(change.before or ""), _lines(change.after)
    grouped = LineMatcher(old, new).get_grouped_opcodes(CONTEXT) if old != new else ()
    hunks = [_hunk(group, old, new) for group in grouped]
    kinds = [row.kind for hunk in hunks for row in hunk.rows]
    return Diff(change.path, change.before is None, kinds.count("add"), kinds.count("del"), hunks)


def _lines(text: str) -> list[str]:
    """The lines with their newlines; the last may have none. Nothing but a newline ends a line."""
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    return list(lines)


def _hunk(group: Sequence[tuple[str, int, int, int, int]], old: list[str], new: list[str]) -> Hunk:
    rows: list[DiffRow] = []
    for tag, i, last_i, j, last_j in group:
        if tag == "equal":
            rows += _rows("same", new[j:last_j], j)
            continue
        gone, come = _rows("del", old[i:last_i], i), _rows("add", new[j:last_j], j)
        pairs = [_marked(one, other) for one, other in zip(gone, come, strict=False)]
        rows += [*(one for one, _ in pairs), *gone[len(pairs) :], *(other for _, other in pairs), *come[len(pairs) :]]
    ranges = (group[0][1], group[-1][2]), (group[0][3], group[-1][4])
    return Hunk("@@ -{} +{} @@".format(*map(_range, ranges)), rows)


def _rows(kind: str, lines: Sequence[str], start: int) -> list[DiffRow]:
    return [
        DiffRow(kind, number, line.removesuffix("\n"), not line.endswith("\n"))
        for number, line in enumerate(lines, start + 1)
    ]


def _range(lines: tuple[int, int]) -> str:
    """The place of a hunk in one text, as `diff -u` writes it: of no lines, the number of the line before."""
    start, end = lines
    if end - start == 1:
        return f"{start + 1}"
    return f"{start + (end > start)},{end - start}"


def _marked(gone: DiffRow, come: DiffRow) -> tuple[DiffRow, DiffRow]:
    """A line and the one in its place, with what differs marked in whole words; as they are where little stays."""
    one, other = (_WORDS.findall(row.text) for row in (gone, come))
    head = alike(one, other)
    tail = alike(one[head:][::-1], other[head:][::-1])
    start, end = len("".join(one[:head])), len("".join(one[len(one) - tail :]))
    stays = len("".join(one[:head] + one[len(one) - tail :]).strip())
    if stays < ALIKE_LEAST * max(len(gone.text.strip()), len(come.text.strip()), 1):
        return gone, come
    return _with(gone, start, end), _with(come, start, end)


def _with(row: DiffRow, start: int, end: int) -> DiffRow:
    return DiffRow(row.kind, row.number, row.text, row.unended, (start, len(row.text) - end))


def _unended(part: str, *, last: bool = False) -> SafeString:
    """A part of a line. Blanks at its end are marked as the line's end only where it is the last part."""
    if last or not part:
        return visible(part)
    return mark_safe(visible(f"{part}.")[:-1])  # noqa: S308 - escaped by visible(), but for the full stop
