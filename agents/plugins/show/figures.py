"""Charts and tables as data, in the form that models give and ledgers keep, and their descriptions in words."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints, model_validator

FIGURE_MOST = 1e100
"""The largest value. Charts of larger ones are unreadable, and the difference of two could overflow a float."""
BARS_MOST = 120
"""Bars of one chart: with this many, each is two pixels wide on a phone."""
WORDS_MOST = 12
"""Values that a sentence lists one by one; of longer series it gives the ends and the extremes."""

Text = Annotated[str, StringConstraints(min_length=1, max_length=120)]
Figure = Annotated[float, Field(ge=-FIGURE_MOST, le=FIGURE_MOST, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=-(10**18), le=10**18)]
Cell = Annotated[str, StringConstraints(max_length=500)] | Whole | Figure | bool | None


class Series(BaseModel):
    """One series of values."""

    name: Text = Field(description="Its name in the legend.")
    values: list[Figure] = Field(min_length=1, max_length=60, description="One number for each label, in that order.")


class Chart(BaseModel):
    """The input of `chart.show`: values by label, in one or more series."""

    title: Text
    kind: Literal["bar", "line"] = Field(description="bar compares groups, line shows a development over time.")
    labels: list[Text] = Field(min_length=1, max_length=60, description="The labels of the values, in order.")
    series: list[Series] = Field(min_length=1, max_length=6)
    unit: Annotated[str, StringConstraints(max_length=20)] = Field("", description="For example EUR, ms or %.")

    @model_validator(mode="after")
    def _can_be_read(self) -> Chart:
        if self.kind == "bar" and len(self.labels) * len(self.series) > BARS_MOST:
            raise ValueError(f"more than {BARS_MOST} bars: show a line chart, or fewer labels")
        for one in self.series:
            if len(one.values) != len(self.labels):
                raise ValueError(f"{one.name!r} has {len(one.values)} values for {len(self.labels)} labels")
        return self


class Table(BaseModel):
    """The input of `table.show`: rows of cells under named columns."""

    title: Text
    columns: list[Text] = Field(min_length=1, max_length=12)
    rows: list[list[Cell]] = Field(max_length=200, description="Each has one cell per column; null is an empty cell.")

    @model_validator(mode="after")
    def _as_many_cells_as_columns(self) -> Table:
        for number, row in enumerate(self.rows, 1):
            if len(row) != len(self.columns):
                raise ValueError(f"row {number} has {len(row)} cells for {len(self.columns)} columns")
        return self


def describe_chart(chart: Chart) -> str:
    """Return the chart as sentences: every value of a short series, the ends and extremes of a long one."""
    unit = f", in {chart.unit}" if chart.unit else ""
    return f"{chart.title}{unit}. " + " ".join(_describe_series(one, chart.labels) for one in chart.series)


def describe_table(table: Table) -> str:
    """Return a sentence with the table's title, size and columns."""
    rows = "1 row" if len(table.rows) == 1 else f"{len(table.rows)} rows"
    return f"{table.title}. {rows} of {', '.join(table.columns)}."


def format_number(value: float) -> str:
    """Return the shortest exact form of a number: 640, 2130.4, 1e+20."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _describe_series(series: Series, labels: list[str]) -> str:
    pairs = list(zip(series.values, labels, strict=True))
    if len(pairs) <= WORDS_MOST:
        return f"{series.name}: {', '.join(f'{label} {format_number(value)}' for value, label in pairs)}."
    (first, since), (last, until) = pairs[0], pairs[-1]
    low, high = min(pairs, key=lambda pair: pair[0]), max(pairs, key=lambda pair: pair[0])
    return (
        f"{series.name}: {len(pairs)} values, from {format_number(first)} ({since}) to {format_number(last)} ({until}),"
        f" lowest {format_number(low[0])} ({low[1]}), highest {format_number(high[0])} ({high[1]})."
    )
