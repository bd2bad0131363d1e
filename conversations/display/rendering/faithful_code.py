"""Code in colours for people who decide about it, as faithful as conversations.display.faithful.

A lexer is no part of what runs: it may take a command for a comment. So colours only tell parts apart, and whatever
would not show exactly what the text shows without them is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from unicodedata import category

from django.utils.html import strip_tags
from django.utils.safestring import SafeString, mark_safe

from conversations.display.faithful import BREAKS_MOST, blanks, counted, visible
from conversations.display.rendering.code import Run, in_colour, runs, runs_of_lines

SHELL = "bash"


def visible_code(text: str, language: str) -> SafeString:
    """Return code as HTML, with marks and in colours."""
    return visible_runs(runs(text, language), visible(text))


def visible_runs(parts: Sequence[Run], plain: SafeString, marked: tuple[int, int] = (0, 0)) -> SafeString:
    """Return these runs as HTML, or `plain`, the same without colours, if that shows anything else.

    `marked`: where in the text a <mark> begins and ends.
    """
    if all(not kind for kind, _ in parts) or any(category(part[0])[0] == "M" for _, part in parts if part):
        return plain  # no colour may part a letter from the marks on it
    html, at = "", 0
    following = [part[:1] for _, part in parts[1:]] + [""]
    for (kind, part), after in zip(parts, following, strict=True):
        html += "".join(
            f"<mark>{in_colour(kind, shown)}</mark>" if inside else in_colour(kind, shown)
            for inside, shown in _cut(part, marked[0] - at, marked[1] - at, after)
        )
        at += len(part)
    return mark_safe(html) if strip_tags(html) == strip_tags(plain) else plain  # noqa: S308 - escaped by visible()


def _cut(part: str, start: int, end: int, after: str) -> Iterator[tuple[bool, SafeString]]:
    """Yield a run in up to three pieces as HTML, each with whether it is between `start` and `end`."""
    cuts = sorted({0, *(min(max(cut, 0), len(part)) for cut in (start, end)), len(part)})
    for one, other in pairwise(cuts):
        yield start <= one < end, _visible(part[one:other], part[other : other + 1] or after)


def _visible(part: str, after: str) -> SafeString:
    """Return a part of a text as HTML. Blanks at its end are trailing ones only if no text comes `after` it."""
    if not after or after == "\n":
        return visible(part)
    return mark_safe(visible(f"{part}.")[:-1])  # noqa: S308 - escaped by visible(), but for the full stop


def command_lines(command: str) -> list[SafeString]:
    """Return all lines of a command as HTML. A word is kept in one piece, so that it does not look like two."""
    lines: list[SafeString] = []
    coloured = zip(command.split("\n"), runs_of_lines(command, SHELL), strict=True)
    for filled, group in groupby(coloured, key=lambda each: bool(each[0])):
        found = list(group)
        if not filled and len(found) > BREAKS_MOST:
            lines.append(counted(f"{len(found):,} empty lines"))
        else:
            lines += [_line(line, parts) for line, parts in found]
    return lines


def _line(line: str, parts: Sequence[Run]) -> SafeString:
    plain, coloured = _words(line, [("", line)]), _words(line, parts)
    return coloured if strip_tags(coloured) == strip_tags(plain) else plain


def _words(line: str, parts: Sequence[Run]) -> SafeString:
    """Return a line, made of these runs, as words and the blanks between them."""
    body = line.rstrip(" \t")
    word: list[Run] = []
    html, left = "", len(body)
    for kind, part in parts:
        for piece in re.split(r"([ \t]+)", part[:left]):
            if piece[:1] in (" ", "\t"):
                html, word = f"{html}{_word(word)}{blanks(piece)}", []
            elif piece:
                word.append((kind, piece))
        left = max(left - len(part), 0)
    return mark_safe(f"{html}{_word(word)}{visible(line[len(body) :])}")  # noqa: S308 - escaped by visible()


def _word(parts: Sequence[Run]) -> str:
    """Return a word as HTML, in one colour or none: in two, `2025-09` would look like two words."""
    kinds = {kind for kind, _ in parts}
    shown = "".join(visible(piece) for _, piece in parts)
    return f'<span class="w">{in_colour(kinds.pop() if len(kinds) == 1 else "", shown)}</span>' if parts else ""
