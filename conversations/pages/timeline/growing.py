"""Incremental Markdown: a growing text as HTML in pieces. Finished pieces never change and are rendered once.

A top-level block is finished as soon as the next one has begun on a complete line. The unfinished tail is parsed
again as it grows, and nothing else: a text of any length costs as much as its last block. A long code block is cut
every CODE_LINES lines. Any other long block is parsed less often, the longer it is.

Nothing is shown as what it is not: code has colours once its piece is finished, a diagram is drawn once its fence is
closed, and a formula is not there before its end is.
"""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

from django.utils.safestring import SafeString
from markdown_it.token import Token

from conversations.display.rendering import markdown
from conversations.display.rendering.diagrams import is_diagram
from conversations.display.rendering.place import PLACE, Place
from conversations.display.rendering.renderer import GROWING
from conversations.display.rendering.tasks import TASK
from conversations.pages.versions import version

CODE_LINES = 40
"""Lines of code in one piece."""
PATIENCE = 1_000
"""An unfinished block is parsed again after one update for each such number of characters in it."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r(?!\Z))|[^\n]+\Z")
_UNDECIDED = re.compile(r"\s*(?:[-*+_=#>`~:]+|\d{1,9}[.)]?)\s*")
"""The beginning of a line that may still become a heading, a list item or a rule."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HALF_A_LINK = re.compile(r"\[([^\[\]\n]*)(?:\](?:\([^()\s]*)?)?\Z")
_FORMULA = re.compile(r" {0,3}(\$\$|\\\[)")
"""The beginning of a formula on lines of its own."""
_LATEX = re.compile(r"[\\^{]")
"""What a formula in a line has and "$HOME" has not."""


@dataclass(frozen=True)
class Piece:
    """A piece of the text as HTML.

    `shape` of code: "more" continues the previous piece, "cut" goes on in the next. That of a footnote is "note".
    """

    html: SafeString
    shape: str = ""

    @cached_property
    def version(self) -> str:
        """A digest of what the piece shows."""
        return version(self.shape, str(self.html))


class GrowingText:
    """A text that grows at its end."""

    def __init__(self, place: Place | None = None) -> None:
        self.finished: list[Piece] = []
        self.open: list[Piece] = []
        self._done = 0  # characters of the text that are in finished pieces
        self._fence = ""  # the opening line of a code block whose beginning is finished
        self._known: dict[str, Any] = {PLACE: place}  # with link definitions and footnotes so far
        self._waits = 0  # updates until the tail is parsed again

    @property
    def pieces(self) -> list[Piece]:
        """All pieces, in order."""
        return self.finished + self.open

    def grow(self, text: str) -> None:
        """Take the whole text so far; it must begin with the text of the previous call."""
        if self._waits:
            self._waits -= 1
            return
        self._take(_LINE.findall(text[self._done :].removesuffix("\r")))  # may be the first half of a line break
        # What is unfinished now counts, not what has come by the next update: a fast text would outrun any patience.
        # The HTML of a table outgrows its text.
        heavy = max(len(text) - self._done, sum(len(piece.html) for piece in self.open) // 4)
        self._waits = heavy // PATIENCE if self.open else 0

    def _take(self, lines: list[str]) -> None:
        complete = len(lines) if not lines or lines[-1].endswith("\n") else len(lines) - 1
        known = deepcopy(self._known)  # a definition may be half written
        decided = _decided(self._fence, lines, complete)
        blocks = self._blocks(decided, known)
        starts = [self._start(block) for block in blocks]
        last = max((n for n, start in enumerate(starts) if n and start < complete), default=0)
        if last and blocks[last - 1][0].type == "dl_open" and blocks[last][0].type == "paragraph_open":
            last -= 1  # perhaps the next term of the list
        ends = starts[1 : last + 1]
        for start, end in zip([0, *ends], ends, strict=False):
            for block in self._blocks(lines[start:end], self._known):
                self.finished += self._pieces(block, self._known, closed=True)
            self._fence = ""
            self._done += _length(lines[start:end])
        self.open = []
        if blocks:
            _mend(blocks[-1])
        begun = starts[last] if last else 0
        for block, start in zip(blocks[last:], starts[last:], strict=True):
            self._show(block, lines[begun:], start - begun, known)

    def _show(self, block: list[Token], lines: list[str], start: int, known: dict[str, Any]) -> None:
        """Add an unfinished block as it is now. Full pieces of code are finished."""
        inside, _ = _inside(self._fence, lines[start:])
        pieces = self._pieces(block, {**known, GROWING: True}, closed=inside != CODE)
        full = len(pieces) - 1
        if full and not self.open:
            opening = 0 if self._fence else start + 1
            # With our own line break: a \r would join the \n of an empty line after it.
            self._fence = self._fence or lines[opening - 1].rstrip("\r\n") + "\n"
            self._done += _length(lines[: opening + full * CODE_LINES])
            self.finished += pieces[:full]
            pieces = pieces[full:]
        self.open += pieces

    def _blocks(self, lines: list[str], known: dict[str, Any]) -> list[list[Token]]:
        """Return the tokens of each top-level block; an unfinished code block gets its opening line back."""
        blocks: list[list[Token]] = [[]]
        for token in markdown.parse(self._fence + "".join(lines), known):
            blocks[-1].append(token)
            if token.level == 0 and token.nesting <= 0:
                blocks.append([])
        return blocks[:-1]

    def _start(self, block: list[Token]) -> int:
        """Return the line on which a block begins."""
        return max((block[0].map or [0])[0] - bool(self._fence), 0)

    def _pieces(self, block: list[Token], known: dict[str, Any], *, closed: bool) -> list[Piece]:
        """Return a block in pieces: one piece, or for code one for every CODE_LINES lines and one for the rest.

        `closed`: the fence of code is. A diagram is one piece, because the whole of it will be a picture.
        """
        if block[0].type == "footnote_reference_open":
            return [Piece(markdown.rendered(block, known), "note")]
        if block[0].type != "fence":
            return [Piece(markdown.rendered(block, known))]
        code = block[0]
        if is_diagram(code.info) and known[PLACE] and not self._fence:
            if closed:
                known.pop(GROWING, None)
            return [Piece(markdown.rendered(block, known))]
        lines = re.findall(r"[^\n]*\n|[^\n]+\Z", code.content)
        full = code.content.count("\n") // CODE_LINES
        pieces = []
        for n in range(full + 1):
            text = "".join(lines[n * CODE_LINES : (n + 1) * CODE_LINES] if n < full else lines[n * CODE_LINES :])
            more = n > 0 or bool(self._fence)
            shape = " ".join(["more"] * more + ["cut"] * (n < full))
            html = markdown.code(text, code.info, headed=not more, coloured=closed or n < full)
            pieces.append(Piece(html, shape))
        return pieces


CODE, FORMULA = "code", "formula"


def _inside(opening: str, lines: list[str]) -> tuple[str, int]:
    """Return what these lines end inside of, CODE, FORMULA or "", and the line on which it begins.

    `opening`: the opening line of a code block whose beginning came before them. An empty line ends a formula.
    """
    begun, closing, began = _FENCE.match(opening), "", 0
    fence = begun[1] if begun else ""
    for number, line in enumerate(lines):
        marks, text = _FENCE.match(line), line.strip()
        if fence:
            if marks and text == marks[1] and marks[1].startswith(fence):
                fence = ""
        elif closing:
            if not text or text.endswith(closing):
                closing = ""
        elif marks:
            fence, began = marks[1], number
        elif (formula := _FORMULA.match(line)) and (end := "$$" if formula[1] == "$$" else r"\]") not in text[2:]:
            closing, began = end, number
    return (CODE if fence else FORMULA if closing else ""), began


def _decided(opening: str, lines: list[str], complete: int) -> list[str]:
    """Return the lines without the last ones if it is not clear yet what they will become. In code, every line is."""
    inside, began = _inside(opening, lines)
    if inside:
        return lines if inside == CODE else lines[:began]
    rows = sum(1 for _ in takewhile(lambda line: line.lstrip().startswith("|"), reversed(lines)))
    if rows and rows - (len(lines) - complete) < 2:
        return lines[: len(lines) - rows]  # perhaps the header of a table
    if complete < len(lines) and _UNDECIDED.fullmatch(lines[-1]):
        return lines[:-1]
    return lines


def _length(lines: list[str]) -> int:
    return sum(map(len, lines))


def _mend(block: list[Token]) -> None:
    """Close what is still open at the end of the text: bold, inline code; half of a link or a formula is left out."""
    last = next((token for token in reversed(block) if token.type == "inline"), None)
    if last is not None and (mended := _mended(last.content)) != last.content:
        box = [token for token in last.children or [] if token.type == TASK]
        last.children = box + markdown.inline(mended)


def _mended(text: str) -> str:
    text = _HALF_A_LINK.sub(r"\1", _without_half_a_formula(text))
    if text.count("`") % 2:
        return text[:-1] if text.endswith("`") else f"{text}`"
    opened = text.rfind("**")
    if text.count("**") % 2 == 0 or text[opened + 2 : opened + 3].isspace():
        return text
    return f"{text.rstrip()}**" if text[opened + 2 :] else text[:opened].rstrip()


def _without_half_a_formula(text: str) -> str:
    opened = text.rfind(r"\(")
    if opened >= 0 and r"\)" not in text[opened:]:
        return text[:opened]
    opened = text.rfind("$")
    begins = text[opened + 1 : opened + 2].strip(" \n0123456789")
    return text[:opened] if text.count("$") % 2 and begins and _LATEX.search(text, opened) else text
