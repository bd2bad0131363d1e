"""The labels below a chart: as many as fit, long ones shortened. The server does not know how wide a page is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from conversations.display.cells import letters
from conversations.display.faithful import plain

WIDE, NARROW = 600.0, 220.0
"""The width available to labels, in pixels: on a desktop, and on the narrowest phone (320 pixels wide)."""
CHARACTER = 6.8
"""The width of one character at 12 pixels, rather more than the average."""
GAP = 16.0
"""Pixels between two labels, so that they do not read as one."""
LEFT, RIGHT = 28.0, 12.0
"""Pixels by which a label may overhang at each edge: below the axis's figures, and into the frame's padding."""
LONGEST = 16
"""Maximum characters of a label. The table of figures has the whole text."""


@dataclass(frozen=True)
class Label:
    """A text at a position in percent. `alt`: hidden on narrow pages. `anchor`: which point of the text is there."""

    text: str
    x: str
    anchor: str
    alt: bool


def labels(texts: Sequence[str]) -> list[Label]:
    """Return the labels that fit, centred below their bands. Those for a narrow page are a subset."""
    lines = [" ".join(plain(text).split()) for text in texts]
    shown = [_cut(line) for line in lines]
    if len(set(shown)) < len(set(lines)):  # what tells them apart was cut
        shown = [_cut_inside(line) for line in lines]
    wide = _fitting(shown, range(len(shown)), WIDE)
    narrow = _fitting(shown, wide, NARROW)
    return [_label(shown[at], at, len(shown), alt=at not in narrow) for at in wide]


def _label(text: str, at: int, count: int, *, alt: bool) -> Label:
    anchor = _anchor(text, at, count)
    edge = {"start": "0%", "end": "100%"}.get(anchor)
    return Label(text, edge or f"{(at + 0.5) / count * 100:.2f}%", anchor, alt)


def _anchor(text: str, at: int, count: int) -> str:
    """Return the anchor of a label: one that would overhang too far starts, or ends, at the edge of the chart."""
    middle, half = (at + 0.5) / count * NARROW, _width(text) / 2
    if half > middle + LEFT and count > 1:
        return "start"
    return "end" if half > NARROW - middle + RIGHT and count > 1 else "middle"


def _fitting(shown: Sequence[str], among: Sequence[int], room: float) -> list[int]:
    """Return every n-th of `among`, so that all fit into `room` pixels, without those that touch another."""
    step = ceil(len(among) / max(1, int(room // (max(map(_width, shown)) + GAP))))
    kept: list[int] = []
    end = -LEFT - GAP
    for at in among[::step]:
        width, anchor = _width(shown[at]), _anchor(shown[at], at, len(shown))
        middle = (at + 0.5) / len(shown) * room
        start = {"start": 0.0, "end": room - width}.get(anchor, middle - width / 2)
        if start >= end + GAP / 2:
            kept.append(at)
            end = start + width
    return kept


def _width(text: str) -> float:
    """Return the width in pixels."""
    return CHARACTER * letters(text)


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1].rstrip()}\N{HORIZONTAL ELLIPSIS}"


def _cut_inside(line: str) -> str:
    """Cut the middle of a line instead of its end."""
    half = LONGEST // 2
    return line if len(line) <= LONGEST else f"{line[:half].rstrip()}\N{HORIZONTAL ELLIPSIS}{line[1 - half :].lstrip()}"
