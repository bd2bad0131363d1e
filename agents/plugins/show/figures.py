"""What a chart and a table hold, as a model gives it and as the ledger keeps it, and both in words."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints, model_validator

FIGURE_MOST = 1e100
"""Beyond it nobody reads a chart, and the difference of two values would no longer be a number."""
BARS_MOST = 120
"""Bars of one chart: on a phone each is two pixels wide then."""
WORDS_MOST = 12
"""Figures that a sentence names one by one; of more it tells the ends and the extremes."""

Text = Annotated[str, StringConstraints(min_length=1, max_length=120)]
Figure = Annotated[float, Field(ge=-FIGURE_MOST, le=FIGURE_MOST, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=-(10**18), le=10**18)]
Cell = Annotated[str, StringConstraints(max_length=500)] | Whole | Figure | bool | None


class Series(BaseModel):
    """One run of values."""

    name: Text = Field(description="What it is called in the legend.")
    values: list[Figure] = Field(min_length=1, max_length=60, description="One number for each label, in their order.")


class Chart(BaseModel):
    """What `chart.show` takes: values by label, in one or more series."""

    title: Text
    kind: Literal["bar", "line"] = Field(description="bar compares groups, line shows a course over time.")
    labels: list[Text] = Field(min_length=1, max_length=60, description="What the values belong to, in order.")
    series: list[Series] = Field(min_length=1, max_length=6)
    unit: Annotated[str, StringConstraints(max_length=20)] = Field("", description="Such as EUR, ms or %.")

    @model_validator(mode="after")
    def _can_be_read(self) -> Chart:
        if self.kind == "bar" and len(self.labels) * len(self.series) > BARS_MOST:
            raise ValueError(f"more than {BARS_MOST} bars: show a line chart, or fewer labels")
        for one in self.series:
            if len(one.values) != len(self.labels):
                raise ValueError(f"{one.name!r} has {len(one.values)} values for {len(self.labels)} labels")
        return self


class Table(BaseModel):
    """What `table.show` takes: rows of cells under named columns."""

    title: Text
    columns: list[Text] = Field(min_length=1, max_length=12)
    rows: list[list[Cell]] = Field(max_length=200, description="Each with one cell for each column; null for none.")

    @model_validator(mode="after")
    def _as_many_cells_as_columns(self) -> Table:
        for number, row in enumerate(self.rows, 1):
            if len(row) != len(self.columns):
                raise ValueError(f"row {number} has {len(row)} cells for {len(self.columns)} columns")
        return self


def chart_in_words(chart: Chart) -> str:
    """The chart as sentences: every value of a short one, the ends and extremes of a long one."""
    unit = f", in {chart.unit}" if chart.unit else ""
    return f"{chart.title}{unit}. " + " ".join(_series_in_words(one, chart.labels) for one in chart.series)


def table_in_words(table: Table) -> str:
    """The table's title, size and columns."""
    rows = "1 row" if len(table.rows) == 1 else f"{len(table.rows)} rows"
    return f"{table.title}. {rows} of {', '.join(table.columns)}."


def in_digits(value: float) -> str:
    """A number as short as it is exact: 640, 2130.4, 1e+20."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def _series_in_words(series: Series, labels: list[str]) -> str:
    pairs = list(zip(series.values, labels, strict=True))
    if len(pairs) <= WORDS_MOST:
        return f"{series.name}: {', '.join(f'{label} {in_digits(value)}' for value, label in pairs)}."
    (first, since), (last, until) = pairs[0], pairs[-1]
    low, high = min(pairs, key=lambda pair: pair[0]), max(pairs, key=lambda pair: pair[0])
    return (
        f"{series.name}: {len(pairs)} values, from {in_digits(first)} ({since}) to {in_digits(last)} ({until}),"
        f" lowest {in_digits(low[0])} ({low[1]}), highest {in_digits(high[0])} ({high[1]})."
    )
