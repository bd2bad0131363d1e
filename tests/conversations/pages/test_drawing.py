"""Axes, positions and numbers of charts and tables, for any figures."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.plugins.show.figures import FIGURE_MOST, Chart
from conversations.pages.drawing.chart import DrawnChart
from conversations.pages.drawing.labels import labels
from conversations.pages.drawing.numerals import figures, tick_labels
from conversations.pages.drawing.scale import axis_of, ticks
from conversations.pages.drawing.table import DrawnTable

FIGURES = st.one_of(
    st.floats(-FIGURE_MOST, FIGURE_MOST), st.floats(-1000, 1000), st.integers(-10, 10).map(float), st.just(5e-324)
)
RUNS = st.lists(FIGURES, min_size=1, max_size=60)


def drawn(kind: str, *runs: list[float], labels: list[str] | None = None, unit: str = "") -> DrawnChart:
    series = [{"name": f"s{n}", "values": run} for n, run in enumerate(runs)]
    names = labels or [str(n) for n in range(len(runs[0]))]
    return DrawnChart({"title": "T", "kind": kind, "labels": names, "series": series, "unit": unit})


def number(percent: str) -> float:
    assert re.fullmatch(r"-?\d+\.\d\d%", percent), percent
    return float(percent[:-1])


@given(values=RUNS, from_zero=st.booleans())
@example(values=[1e15, 1e15 + 0.1], from_zero=False)
@example(values=[0.1, 0.2, 0.3], from_zero=True)
@example(values=[FIGURE_MOST, -FIGURE_MOST], from_zero=False)
@example(values=[-7.0, -7.0], from_zero=False)
def test_an_axis_holds_its_values_and_has_few_even_marks(values: list[float], from_zero: bool) -> None:
    scale = axis_of(values, from_zero=from_zero)
    marks = ticks(scale)
    assert scale.low < scale.high
    nothing = (scale.high - scale.low) * 1e-8  # of which nobody sees whether it is inside
    assert marks[0] <= scale.low + nothing
    assert marks[-1] >= scale.high - nothing
    assert marks == sorted(set(marks))
    assert 3 <= len(marks) <= 7
    steps = [after - before for before, after in pairwise(marks)]
    assert max(steps) - min(steps) <= 1e-6 * max(steps)
    if from_zero:
        assert marks[0] <= 0 <= marks[-1]


@given(values=RUNS)
@example(values=[1e15, 1e15 + 0.1])
@example(values=[1234.5, 1234.6])
def test_no_two_marks_read_alike(values: list[float]) -> None:
    told = tick_labels(ticks(axis_of(values, from_zero=False)))
    assert len(set(told)) == len(told)
    assert all(len(text) <= 16 for text in told)


@given(values=RUNS)
def test_a_larger_value_stands_higher_and_nothing_stands_outside(values: list[float]) -> None:
    drawing = drawn("line", values)
    (line,) = drawing.lines
    heights = [float(point.split(",")[1]) for point in line.points.split(" ")]
    assert all(0 <= height <= 100 for height in heights)
    pairs = sorted(zip(values, heights, strict=True))
    assert [height for _, height in pairs] == sorted(heights, reverse=True)


@given(values=RUNS, kind=st.sampled_from(["lying", "standing"]))
def test_bars_begin_at_zero_and_lie_within(values: list[float], kind: str) -> None:
    drawing = drawn("bar", values[:30] if kind == "lying" else [*values, *[1.0] * 30][:60])
    assert drawing.lying == (kind == "lying")
    for bar, value in zip(
        [row.bar for _, rows in drawing.rows for row in rows] if drawing.lying else drawing.bars,
        drawing.values,
        strict=True,
    ):
        zero = drawing.scale.at(0) if drawing.lying else 100 - drawing.scale.at(0)
        start, length = (number(bar.x), number(bar.width)) if drawing.lying else (number(bar.y), number(bar.height))
        before = value < 0 if drawing.lying else value > 0
        assert (start + length if before else start) == pytest.approx(zero, abs=0.02)
        assert -0.5 <= start <= start + length <= 100.5
        assert (length > 0) == (value != 0)


def test_bars_of_one_label_stand_side_by_side_in_its_place() -> None:
    drawing = drawn("bar", [1.0] * 40, [2.0] * 40)
    bars = sorted(drawing.bars, key=lambda bar: number(bar.x))
    assert [bar.series for bar in bars] == [1, 2] * 40
    for left, right in pairwise(bars):
        assert number(left.x) + number(left.width) <= number(right.x) + 0.02
    assert [number(bar.x) // 2.5 for bar in bars] == [at for at in range(40) for _ in "ab"]


def test_the_line_at_zero_is_drawn_where_values_lie_on_both_sides() -> None:
    assert drawn("bar", [3.0, -1.0]).zero == "25.00%"
    assert drawn("line", [300.0, -100.0]).zero == "75.00%"
    assert not drawn("bar", [3.0, 1.0]).zero
    assert not drawn("line", [-300.0, -100.0]).zero


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        ([0, 300_000], ["300k", "200k", "100k", "0"]),
        ([1000, 1100], ["1,100", "1,075", "1,050", "1,025", "1,000"]),
        ([-800, 1200], ["1,500", "1,000", "500", "0", "\u2212500", "\u22121,000"]),
        ([0.1, 0.3], ["0.3", "0.2", "0.1", "0.0"]),
        ([7, 7], ["8", "6", "4", "2", "0"]),
        ([0, 0], ["1.00", "0.75", "0.50", "0.25", "0.00"]),
        ([0, 2.2e9], ["3B", "2B", "1B", "0"]),
        ([1e20, 9e20], ["1.00e21", "7.50e20", "5.00e20", "2.50e20", "0"]),
        ([0, 2e-9], ["2.0e\u22129", "1.5e\u22129", "1.0e\u22129", "5.0e\u221210", "0"]),
    ],
)
def test_marks_as_people_would_write_them(values: list[float], marks: list[str]) -> None:
    assert [text for _, text in drawn("line", values).marks] == marks


@pytest.mark.parametrize(
    ("values", "unit", "told"),
    [
        ([640, 2130.4, 412], "EUR", ["640.00", "2,130.40", "412.00"]),
        ([640, 2130.4], "ms", ["640.0", "2,130.4"]),
        ([0.1 + 0.2, 1], "", ["0.3", "1.0"]),
        ([-1234567], "", ["\u22121,234,567"]),
        ([1e20, -1.5e-9, 0], "", ["1e20", "\u22121.5e\u22129", "0"]),
        ([3.14159265358979], "", ["3.141593"]),
    ],
)
def test_figures_below_each_other_have_the_same_decimals(values: list[float], unit: str, told: list[str]) -> None:
    assert figures(values, unit=unit) == told


def test_a_chart_of_bars_is_a_table_with_every_label_and_one_of_very_many_has_an_axis() -> None:
    assert drawn("bar", [1.0] * 25).lying
    assert drawn("bar", [1.0] * 25, [1.0] * 25).lying
    assert not drawn("bar", [1.0] * 25, [1.0] * 25, [1.0] * 25).lying
    assert not drawn("bar", [1.0] * 31).lying
    assert not drawn("line", [1.0]).lying


@given(texts=st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=60))
def test_labels_stand_in_order_and_those_of_a_narrow_page_are_among_the_others(texts: list[str]) -> None:
    found = labels(texts)
    places = [number(label.x) if label.anchor == "middle" else float(label.x[:-1]) for label in found]
    assert places == sorted(places)
    assert not found or not all(label.alt for label in found)
    assert all(0 <= place <= 100 for place in places)


def test_as_many_labels_as_fit() -> None:
    weeks = [f"2025-W{n:02}" for n in range(1, 61)]
    found = labels(weeks)
    assert [label.text for label in found] == ["2025-W01", "2025-W09", "2025-W17", "2025-W25", "2025-W33", "2025-W41",
                                               "2025-W49", "2025-W57"]  # fmt: skip
    assert [label.text for label in found if not label.alt] == ["2025-W01", "2025-W25", "2025-W49"]
    assert [label.text for label in labels(["a", "b", "c"]) if not label.alt] == ["a", "b", "c"]
    assert labels(["A label that goes on and on"])[0].text == "A label that go\u2026"
    assert [label.text for label in labels([f"A label that goes on: {n}" for n in (1, 2)])] == [
        "A label\u2026s on: 1",
        "A label\u2026s on: 2",
    ]
    assert len(labels(["\u6771\u4eac\u90fd\u5e81" * 3] * 10)) < len(labels(["abcd" * 3] * 10))


def test_a_column_of_a_table_is_written_as_what_it_holds() -> None:
    rows: list[list[Any]] = [
        [2024, 9500, "640.00", "2025-07-18", "x 1", True, 1.5],
        [2025, 12000, "-12 %", None, 7, None, 2.25],
    ]
    names = ["year", "sum", "text", "day", "mixed", "flag", "decimal"]
    sheet = DrawnTable({"title": "T", "columns": names, "rows": rows})
    assert [[cell for _, cell in row] for row in sheet.rows] == [
        ["2024", "9,500", "640.00", "2025-07-18", "x 1", "yes", "1.50"],
        ["2025", "12,000", "-12 %", None, "7", None, "2.25"],
    ]
    assert [column.name for column in sheet.columns if column.numbers] == ["year", "sum", "text", "decimal"]


def test_what_a_tool_takes_can_be_drawn() -> None:
    """The largest chart that is accepted."""
    chart = Chart.model_validate(
        {
            "title": "x" * 120,
            "kind": "line",
            "labels": ["y" * 120] * 60,
            "series": [{"name": "z" * 120, "values": [FIGURE_MOST, -FIGURE_MOST] * 30}] * 6,
        }
    )
    drawing = DrawnChart(chart.model_dump(mode="json"))
    assert len(list(drawing.lines)) == 6
    assert len(list(drawing.bands)) == 60
    assert len(drawing.table) == 60
