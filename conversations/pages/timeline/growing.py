"""Incremental Markdown: a growing text as HTML in pieces. Finished pieces never change and are rendered once.

A top-level block is finished as soon as the next one has begun on a complete line. The unfinished tail is parsed
again as it grows, and nothing else: a text of any length costs as much as its last block. A long code block is cut
every CODE_LINES lines. Any other long block is parsed less often, the longer it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any

from django.utils.safestring import SafeString
from markdown_it.token import Token

from conversations.pages.timeline import markdown
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


@dataclass(frozen=True)
class Piece:
    """A piece of the text as HTML. `shape` of code: "more" continues the previous piece, "cut" goes on in the next."""

    html: SafeString
    shape: str = ""

    @cached_property
    def version(self) -> str:
        """A digest of what the piece shows."""
        return version(self.shape, str(self.html))


class GrowingText:
    """A text that grows at its end."""

    def __init__(self) -> None:
        self.finished: list[Piece] = []
        self.open: list[Piece] = []
        self._done = 0  # characters of the text that are in finished pieces
        self._fence = ""  # the opening line of a code block whose beginning is finished
        self._known: dict[str, Any] = {}  # link definitions so far
        self._left = 0  # updates since the tail was last parsed

    @property
    def pieces(self) -> list[Piece]:
        """All pieces, in order."""
        return self.finished + self.open

    def grow(self, text: str) -> None:
        """Take the whole text so far; it must begin with the text of the previous call."""
        tail = text[self._done :].removesuffix("\r")  # may be the first half of a line break
        # The HTML of a table outgrows its text.
        heavy = max(len(tail), sum(len(piece.html) for piece in self.open) // 4)
        if self.open and self._left < heavy // PATIENCE:
            self._left += 1
            return
        self._left = 0
        self._take(_LINE.findall(tail))

    def _take(self, lines: list[str]) -> None:
        complete = len(lines) if not lines or lines[-1].endswith("\n") else len(lines) - 1
        known = {"references": dict(self._known.get("references", {}))}  # a definition may be half written
        decided = lines if _in_code(self._fence, lines) else _decided(lines, complete)
        blocks = self._blocks(decided, known)
        starts = [self._start(block) for block in blocks]
        last = max((n for n, start in enumerate(starts) if n and start < complete), default=0)
        ends = starts[1 : last + 1]
        for start, end in zip([0, *ends], ends, strict=False):
            for block in self._blocks(lines[start:end], self._known):
                self.finished += self._pieces(block, self._known)
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
        pieces = self._pieces(block, known)
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

    def _pieces(self, block: list[Token], known: dict[str, Any]) -> list[Piece]:
        """Return a block in pieces: one piece, or for code one for every CODE_LINES lines and one for the rest."""
        code = block[0]
        if code.type != "fence":
            return [Piece(markdown.rendered(block, known))]
        lines = re.findall(r"[^\n]*\n|[^\n]+\Z", code.content)
        full = code.content.count("\n") // CODE_LINES
        pieces = []
        for n in range(full + 1):
            text = "".join(lines[n * CODE_LINES : (n + 1) * CODE_LINES] if n < full else lines[n * CODE_LINES :])
            more = n > 0 or bool(self._fence)
            shape = " ".join(["more"] * more + ["cut"] * (n < full))
            pieces.append(Piece(markdown.code(text, "" if more else code.info, headed=not more), shape))
        return pieces


def _in_code(opening: str, lines: list[str]) -> bool:
    """Whether these lines, after the `opening` line of a code block, end inside code: there every line is decided."""
    begun = _FENCE.match(opening)
    fence = begun[1] if begun else ""
    for line in lines:
        marks = _FENCE.match(line)
        if marks and not fence:
            fence = marks[1]
        elif marks and line.strip() == marks[1] and marks[1].startswith(fence):
            fence = ""
    return bool(fence)


def _decided(lines: list[str], complete: int) -> list[str]:
    """Return the lines without the last ones if it is not clear yet what they will become."""
    rows = sum(1 for _ in takewhile(lambda line: line.lstrip().startswith("|"), reversed(lines)))
    if rows and rows - (len(lines) - complete) < 2:
        return lines[: len(lines) - rows]  # perhaps the header of a table
    if complete < len(lines) and _UNDECIDED.fullmatch(lines[-1]):
        return lines[:-1]
    return lines


def _length(lines: list[str]) -> int:
    return sum(map(len, lines))


def _mend(block: list[Token]) -> None:
    """Close what is still open at the end of the text: bold, inline code, half of a link."""
    last = next((token for token in reversed(block) if token.type == "inline"), None)
    if last is not None and (mended := _mended(last.content)) != last.content:
        last.children = markdown.inline(mended)


def _mended(text: str) -> str:
    text = _HALF_A_LINK.sub(r"\1", text)
    if text.count("`") % 2:
        return text[:-1] if text.endswith("`") else f"{text}`"
    opened = text.rfind("**")
    if text.count("**") % 2 == 0 or text[opened + 2 : opened + 3].isspace():
        return text
    return f"{text.rstrip()}**" if text[opened + 2 :] else text[:opened].rstrip()
