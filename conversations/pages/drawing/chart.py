"""Charts: the positions of bars, lines and ticks, in percent of the drawing area."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agents.plugins.show.figures import Chart
from conversations.display.faithful import plain
from conversations.pages.drawing.labels import Label, labels
from conversations.pages.drawing.numerals import figures, tick_labels
from conversations.pages.drawing.scale import Scale, axis_of, ticks

LABELS_MOST, ROWS_MOST = 30, 60
"""The maximum numbers of labels and of horizontal bars, each next to its figure; more become vertical bars."""
BAND = 72.0
"""Percent of a label's width that its bars fill; the rest separates them from the next label."""
DOTS_MOST = 36
"""The maximum number of values in a chart whose points are marked by dots."""
LEAST = 0.4
"""Minimum length of a bar in percent, so that a small value does not look like zero."""


@dataclass(frozen=True)
class Bar:
    """A rectangle of the series with this number, from 1. Position and size in percent."""

    series: int
    x: str
    y: str
    width: str
    height: str


@dataclass(frozen=True)
class BarRow:
    """A horizontal bar, with the name of its series and its figure."""

    bar: Bar
    name: str
    figure: str


@dataclass(frozen=True)
class Line:
    """A line of the series with this number: its points in a square of 100 by 100, and its dots in percent."""

    series: int
    points: str
    dots: list[tuple[str, str]]


@dataclass(frozen=True)
class Band:
    """The area of one label: its position, and its figures as text."""

    x: str
    width: str
    title: str


class DrawnChart:
    """A chart drawn from a tool's data. Raises pydantic's ValidationError if the data is not a chart.

    `lying`: the bars are horizontal, next to their figures. Such a chart is a table and needs no axis. `scale` is the
    axis of the values: for horizontal bars just their range, otherwise from tick to tick.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.chart = Chart.model_validate(data)
        self.values = [value for one in self.chart.series for value in one.values]
        self.count = len(self.chart.labels)
        self.lying = self.chart.kind == "bar" and self.count <= LABELS_MOST and len(self.values) <= ROWS_MOST
        axis = axis_of(self.values, from_zero=self.chart.kind == "bar")
        self._ticks = ticks(axis)
        self.scale = axis if self.lying else Scale(self._ticks[0], self._ticks[-1])
        self._band = 100 / self.count  # the width of one label's area, in percent

    @property
    def legend(self) -> list[tuple[int, str]]:
        """The series by number, if there is more than one."""
        named = list(enumerate((one.name for one in self.chart.series), 1))
        return named if len(named) > 1 else []

    @property
    def zero(self) -> str:
        """The position of zero on that axis, from the left or the top; "" unless values lie on both sides of it."""
        at = self.scale.at(0)
        return _percent(at if self.lying else 100 - at) if self.scale.low < 0 < self.scale.high else ""

    # Horizontal bars

    @property
    def rows(self) -> Iterator[tuple[str, list[BarRow]]]:
        """Each label with its bars."""
        texts = figures(self.values, unit=self.chart.unit)
        for at, label in enumerate(self.chart.labels):
            bars = [
                BarRow(self._lying(number, one.values[at]), one.name, texts[(number - 1) * self.count + at])
                for number, one in enumerate(self.chart.series, 1)
            ]
            yield label, bars

    def _lying(self, series: int, value: float) -> Bar:
        start, length = _from_zero(self.scale, value)
        return Bar(series, _percent(start), "0%", _percent(length), "100%")

    # An axis with vertical bars or lines

    @property
    def marks(self) -> list[tuple[str, str]]:
        """The ticks of the axis from the top down, each with its text."""
        texts = zip(self._ticks, tick_labels(self._ticks), strict=True)
        return [(_percent(100 - self.scale.at(tick)), text) for tick, text in texts][::-1]

    @property
    def labels(self) -> list[Label]:
        """The labels below the axis."""
        return labels(self.chart.labels)

    @property
    def bars(self) -> Iterator[Bar]:
        """Vertical bars; those of one label are side by side."""
        if self.chart.kind != "bar":
            return
        width = BAND / 100 * self._band / len(self.chart.series)
        for number, one in enumerate(self.chart.series, 1):
            for at, value in enumerate(one.values):
                left = (at + (1 - BAND / 100) / 2) * self._band + (number - 1) * width
                start, length = _from_zero(self.scale, value)
                top = 100 - start - length
                yield Bar(number, _percent(left), _percent(top), _percent(width), _percent(length))

    @property
    def lines(self) -> Iterator[Line]:
        """One line for each series."""
        if self.chart.kind != "line":
            return
        for number, one in enumerate(self.chart.series, 1):
            places = [((at + 0.5) * self._band, 100 - self.scale.at(value)) for at, value in enumerate(one.values)]
            dots = [(_percent(x), _percent(y)) for x, y in places] if len(self.values) <= DOTS_MOST else []
            yield Line(number, " ".join(f"{x:.2f},{y:.2f}" for x, y in places), dots)

    @property
    def bands(self) -> Iterator[Band]:
        """The tooltips of the chart, one for each label."""
        for at, (label, *texts) in enumerate(self.table):
            named = zip((one.name for one in self.chart.series), texts, strict=True)
            said = ", ".join(f"{name} {figure}" for name, figure in named) if self.legend else texts[0]
            title = f"{label}: {said} {self.chart.unit}".rstrip()
            yield Band(_percent(at * self._band), _percent(self._band), plain(title))

    @property
    def table(self) -> list[list[str]]:
        """All figures: one row for each label, beginning with the label."""
        columns = [figures(one.values, unit=self.chart.unit) for one in self.chart.series]
        return [[label, *row] for label, *row in zip(self.chart.labels, *columns, strict=True)]


def _from_zero(scale: Scale, value: float) -> tuple[float, float]:
    """Return where a bar from zero to `value` starts and how long it is. A bar that is not zero is always visible."""
    zero, end = scale.at(0), scale.at(value)
    length = max(abs(end - zero), LEAST if value else 0.0)
    return (zero if value > 0 else zero - length), length


def _percent(value: float) -> str:
    return f"{value:.2f}%"
