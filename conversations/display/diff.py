"""Unified diffs: removed and added lines, with a few lines around them. No changed line is left out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from agents.engine.outputs.change import Change
from conversations.database.erasable_cache import erasable
from conversations.display.faithful import visible
from conversations.display.matching import LineMatcher, alike
from conversations.display.rendering.code import Run, runs_of_lines
from conversations.display.rendering.faithful_code import visible_runs

CONTEXT = 3
"""Unchanged lines around a change, as in `diff -u`."""
KEPT = 16
"""Diffs in the cache: a page is rendered repeatedly while its turn goes on."""
ALIKE_LEAST = 0.4
"""Share of a changed line that must be unchanged for its words to be marked: below it, everything would be marked."""

_WORDS = re.compile(r"\w+|\s+|.", re.DOTALL)


@dataclass(frozen=True)
class DiffRow:
    """One line. `kind` is same, add or del; `number` is its line number in its own text.

    `marked` is the part of `text` that differs from the line that it replaces, or that replaces it. `unended`: it is
    the last line of its text, without a newline at the end. `runs`: the text in colours.
    """

    kind: str
    number: int
    text: str
    unended: bool = False
    marked: tuple[int, int] = (0, 0)
    runs: Sequence[Run] = ()

    @property
    def sign(self) -> str:
        """The sign of an added or removed line, for people who see no colours: a real minus, as wide as the plus."""
        return {"add": "+", "del": "\N{MINUS SIGN}"}.get(self.kind, "")

    @property
    def html(self) -> SafeString:
        """The line as HTML, with nothing hidden: see conversations.display.faithful.visible."""
        start, end = self.marked
        if start == end:
            return visible_runs(self.runs, visible(self.text))
        before, within = _unended(self.text[:start]), _unended(self.text[start:end], last=end == len(self.text))
        plain = format_html("{}<mark>{}</mark>{}", before, within, visible(self.text[end:]))
        return visible_runs(self.runs, plain, self.marked)


@dataclass(frozen=True)
class Hunk:
    """Adjacent lines. `head` says which lines of the two texts they are: "@@ -41,7 +41,9 @@"."""

    head: str
    rows: Sequence[DiffRow]


@dataclass(frozen=True)
class Diff:
    """A diff. `new`: the text does not exist yet. Without hunks nothing changes, or the new text is empty."""

    path: str
    new: bool
    added: int
    removed: int
    hunks: Sequence[Hunk]

    @property
    def what(self) -> str:
        """What does not exist yet: a file, or a folder with all of its files."""
        return "folder" if self.path.endswith("/") else "file"


@erasable
@lru_cache(maxsize=KEPT)
def diff(change: Change) -> Diff:
    """Return the diff of a change."""
    old, new = _lines(change.before or ""), _lines(change.after)
    grouped = LineMatcher(old, new).get_grouped_opcodes(CONTEXT) if old != new else ()
    colours = [runs_of_lines(text, change.path) for text in (change.before or "", change.after)] if old != new else ()
    hunks = [_coloured(_hunk(group, old, new), *colours) for group in grouped]
    kinds = [row.kind for hunk in hunks for row in hunk.rows]
    return Diff(change.path, change.before is None, kinds.count("add"), kinds.count("del"), hunks)


def _lines(text: str) -> list[str]:
    """Return the lines with their newlines; the last may have none. Only a newline ends a line."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


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


def _coloured(hunk: Hunk, old: Sequence[Sequence[Run]], new: Sequence[Sequence[Run]]) -> Hunk:
    """Return a hunk with its lines in the colours that they have in the whole of their text."""
    rows = [replace(row, runs=(old if row.kind == "del" else new)[row.number - 1]) for row in hunk.rows]
    return replace(hunk, rows=rows)


def _rows(kind: str, lines: Sequence[str], start: int) -> list[DiffRow]:
    return [
        DiffRow(kind, number, line.removesuffix("\n"), not line.endswith("\n"))
        for number, line in enumerate(lines, start + 1)
    ]


def _range(lines: tuple[int, int]) -> str:
    """Return the range of a hunk in one text, as `diff -u` writes it: without lines, the number of the line before."""
    start, end = lines
    if end - start == 1:
        return f"{start + 1}"
    return f"{start + (end > start)},{end - start}"


def _marked(gone: DiffRow, come: DiffRow) -> tuple[DiffRow, DiffRow]:
    """Mark the differing words of a line and its replacement; leave them unmarked if little is the same."""
    one, other = (_WORDS.findall(row.text) for row in (gone, come))
    head = alike(one, other)
    tail = alike(one[head:][::-1], other[head:][::-1])
    start, end = len("".join(one[:head])), len("".join(one[len(one) - tail :]))
    same = len("".join(one[:head] + one[len(one) - tail :]).strip())
    if same < ALIKE_LEAST * max(len(gone.text.strip()), len(come.text.strip()), 1):
        return gone, come
    return _between(gone, start, len(gone.text) - end), _between(come, start, len(come.text) - end)


def _between(row: DiffRow, start: int, end: int) -> DiffRow:
    """Return the row with this part marked, and more of it where letters would be parted from the marks on them."""
    while start < end and start > 0 and _on_a_letter(row.text[start]):
        start -= 1
    while start < end < len(row.text) and _on_a_letter(row.text[end]):
        end += 1
    return replace(row, marked=(start, end))


def _on_a_letter(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


def _unended(part: str, *, last: bool = False) -> SafeString:
    """Return a part of a line as HTML. Blanks at its end are marked as trailing only if it is the last part."""
    if last or not part:
        return visible(part)
    return mark_safe(visible(f"{part}.")[:-1])  # noqa: S308 - escaped by visible(), but for the full stop
