"""A chart as shapes: where its bars, lines and marks stand, in percent of the place they are drawn in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agents.plugins.show.figures import Chart
from conversations.display.faithful import plain
from conversations.pages.drawing.labels import Label, labels
from conversations.pages.drawing.numerals import figures, tick_labels
from conversations.pages.drawing.scale import Scale, reach, ticks

ROWS_MOST = 12
"""Bars that lie next to their figures; more of them stand side by side above an axis."""
BAND = 72.0
"""Percent of a label's place that its bars fill; the rest parts them from the next."""
DOTS_MOST = 36
"""Values of a chart that are marked by dots, one by one."""
LEAST = 0.4
"""Percent that a bar is long at least, or a small value would seem to be none."""


@dataclass(frozen=True)
class Bar:
    """A rectangle of the series with this number, from 1; places and sizes in percent."""

    series: int
    x: str
    y: str
    width: str
    height: str


@dataclass(frozen=True)
class BarRow:
    """A lying bar with its series's name and its figure."""

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
    """What belongs to one label: its place, and its figures in words."""

    x: str
    width: str
    title: str


class Drawing:
    """A chart that is drawn from what a tool was given. Raises pydantic's ValidationError where that is no chart."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.chart = Chart.model_validate(data)
        self.values = [value for one in self.chart.series for value in one.values]
        self.count = len(self.chart.labels)

    @property
    def lying(self) -> bool:
        """Whether its bars lie next to their figures: then it is a table, and needs no axis."""
        return self.chart.kind == "bar" and len(self.values) <= ROWS_MOST

    @property
    def legend(self) -> list[tuple[int, str]]:
        """The series by number, where there is more than one to tell apart."""
        named = list(enumerate((one.name for one in self.chart.series), 1))
        return named if len(named) > 1 else []

    @cached_property
    def _reach(self) -> Scale:
        return reach(self.values, from_zero=self.chart.kind == "bar")

    @cached_property
    def _ticks(self) -> list[float]:
        return ticks(self._reach)

    @cached_property
    def scale(self) -> Scale:
        """The axis of the values: of lying bars as long as they are, otherwise from mark to mark."""
        return self._reach if self.lying else Scale(self._ticks[0], self._ticks[-1])

    @property
    def zero(self) -> str:
        """Where zero is on that axis, from the left or from the top; blank where nothing is on its other side."""
        at = self.scale.at(0)
        return _percent(at if self.lying else 100 - at) if self.scale.low < 0 < self.scale.high else ""

    # Lying bars

    @property
    def rows(self) -> Iterator[tuple[str, list[BarRow]]]:
        """Each label with its bars."""
        told = figures(self.values, unit=self.chart.unit)
        for at, label in enumerate(self.chart.labels):
            yield (
                label,
                [
                    BarRow(self._lying(number, one.values[at]), one.name, told[(number - 1) * self.count + at])
                    for number, one in enumerate(self.chart.series, 1)
                ],
            )

    def _lying(self, series: int, value: float) -> Bar:
        start, length = _from_zero(self.scale, value)
        return Bar(series, _percent(start), "0%", _percent(length), "100%")

    # An axis, with bars above it or lines

    @property
    def marks(self) -> list[tuple[str, str]]:
        """The marks of the axis from the top down, each with its text."""
        told = zip(self._ticks, tick_labels(self._ticks), strict=True)
        return [(_percent(100 - self.scale.at(tick)), text) for tick, text in told][::-1]

    @property
    def labels(self) -> list[Label]:
        """What stands below it."""
        return labels(self.chart.labels)

    @property
    def bars(self) -> Iterator[Bar]:
        """Standing bars, those of one label side by side."""
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
        """What a pointer over the chart is told."""
        for at, (label, *told) in enumerate(self.table):
            named = zip((one.name for one in self.chart.series), told, strict=True)
            said = ", ".join(f"{name} {figure}" for name, figure in named) if self.legend else told[0]
            title = f"{label}: {said} {self.chart.unit}".rstrip()
            yield Band(_percent(at * self._band), _percent(self._band), plain(title))

    @property
    def table(self) -> list[list[str]]:
        """Every figure: a row for each label, with the label first."""
        columns = [figures(one.values, unit=self.chart.unit) for one in self.chart.series]
        return [[label, *row] for label, *row in zip(self.chart.labels, *columns, strict=True)]

    @property
    def _band(self) -> float:
        """The width of one label's place, in percent."""
        return 100 / self.count


def _from_zero(scale: Scale, value: float) -> tuple[float, float]:
    """Where a bar from zero to `value` starts and how long it is; of a value that is not zero something is seen."""
    zero, end = scale.at(0), scale.at(value)
    length = max(abs(end - zero), LEAST if value else 0.0)
    return (zero if value > 0 else zero - length), length


def _percent(value: float) -> str:
    return f"{value:.2f}%"
