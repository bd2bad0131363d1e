"""Charts as SVG, for figures that are hard to read in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

Line = Sequence[tuple[float, float]]

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 720, 400, 60, 50, 40
COLOURS = ("#1d4ed8", "#93b4f8", "#b45309", "#f0b56c")


def lines(title: str, across: str, up: str, series: Mapping[str, Line], marks: Mapping[str, float]) -> str:
    """Return a line chart as SVG; `marks` are named levels, such as a target."""
    points = [point for line in series.values() for point in line]
    x_most, y_most = max(x for x, _ in points), max([y for _, y in points] + list(marks.values())) * 1.1

    def x_of(x: float) -> float:
        return LEFT + (WIDTH - LEFT - 150) * x / x_most

    def y_of(y: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * y / y_most

    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>',
        f'<text x="{LEFT}" y="{HEIGHT - 12}">{escape(across)}</text>',
        f'<text x="12" y="{TOP - 8}">{escape(up)}</text>',
    ]
    for x in sorted({x for x, _ in points}):
        drawn.append(f'<text x="{x_of(x):.0f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{x:g}</text>')
    for step in range(5):
        y = y_most * step / 4
        drawn.append(f'<path d="M{LEFT} {y_of(y):.0f}H{WIDTH - 150}" stroke="#ddd"/>')
        drawn.append(f'<text x="{LEFT - 6}" y="{y_of(y) + 4:.0f}" text-anchor="end">{y:.0f}</text>')
    for name, y in marks.items():
        drawn.append(f'<path d="M{LEFT} {y_of(y):.0f}H{WIDTH - 150}" stroke="#666" stroke-dasharray="4 4"/>')
        drawn.append(f'<text x="{WIDTH - 146}" y="{y_of(y) + 4:.0f}" fill="#666">{escape(name)}</text>')
    for (name, line), colour in zip(series.items(), COLOURS, strict=False):
        path = "L".join(f"{x_of(x):.1f} {y_of(y):.1f}" for x, y in line)
        drawn.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        x, y = line[-1]
        drawn.append(f'<text x="{x_of(x) + 6:.0f}" y="{y_of(y) + 4:.0f}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*drawn, "</svg>\n"])
