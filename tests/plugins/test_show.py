"""Charts, tables and reports: what a model may ask for, what it is told, and what people are given."""

from __future__ import annotations

from typing import Any

import pytest

from agents.engine.outputs.registry import check_kind
from agents.engine.schema import parse
from agents.engine.tools.tool import Risk, Tool, ToolCall
from agents.plugins.reports.tools import file_name, write_report
from agents.plugins.show.tools import show_chart, show_table
from tests.plugins.calls import Desk

CHART: dict[str, Any] = {
    "title": "Paid twice",
    "kind": "bar",
    "labels": ["July", "August"],
    "series": [{"name": "Sum", "values": [640, 2130.4]}],
    "unit": "EUR",
}
TABLE: dict[str, Any] = {"title": "Invoices", "columns": ["No", "Paid"], "rows": [["a", True], [None, 1.5]]}


def called(tool: Tool, desk: Desk, **payload: Any) -> tuple[str, ToolCall[Any]]:
    """What the model is told, and the call with what it emitted."""
    assert tool.problem(payload) is None
    call = ToolCall(tool.name, parse(tool.input, payload), user=1, services=desk.services, path="1/0")
    said = tool.function(call)
    for step in call.emitted:
        if step.type != "file":  # it has no document yet, and is made by call.file(...) alone
            check_kind(step.type, step.payload)
    return said, call


def test_a_chart_is_a_widget_with_its_data_and_its_words(desk: Desk) -> None:
    said, call = called(show_chart, desk, **CHART)
    assert said == "The person sees the bar chart 'Paid twice': 2 labels."
    (step,) = call.emitted
    assert step.payload["widget"] == "chart"
    assert step.payload["data"] == CHART
    assert step.payload["fallback"] == "Paid twice, in EUR. Sum: July 640, August 2130.4."


def test_a_long_chart_is_told_by_its_ends_and_extremes(desk: Desk) -> None:
    labels = [f"d{n}" for n in range(1, 31)]
    series = [{"name": "x", "values": [(n * 7) % 31 for n in range(30)]}]
    _, call = called(show_chart, desk, title="Days", kind="line", labels=labels, series=series)
    told = "Days. x: 30 values, from 0 (d1) to 17 (d30), lowest 0 (d1), highest 30 (d23)."
    assert call.emitted[0].payload["fallback"] == told


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"labels": ["July"]}, "'Sum' has 2 values for 1 labels"),
        ({"labels": []}, "labels: Give at least one"),
        ({"labels": ["x"] * 61}, "labels: Give at most 60 labels; there are 61"),
        ({"series": []}, "series: Give at least one"),
        ({"series": CHART["series"] * 7}, "series: Give at most 6 series; there are 7"),
        ({"series": [{"name": "Sum", "values": ["640", 1]}]}, "series.0.values.0: Enter a number"),
        ({"series": [{"name": "Sum", "values": [1, None]}]}, "series.0.values.1: Enter a number"),
        (
            {"series": [{"name": "Sum", "values": [1, 1e300]}]},
            "series.0.values.1: Enter a number that is 1e+100 or less",
        ),
        ({"kind": "pie"}, "kind: Choose 'bar' or 'line'"),
        ({"title": ""}, "title: Enter a value"),
        (
            {"labels": ["x"] * 60, "series": [{"name": "Sum", "values": [1] * 60}] * 3},
            "more than 120 bars: show a line chart, or fewer labels",
        ),
    ],
)
def test_a_chart_that_makes_no_sense_is_refused_with_the_reason(change: dict[str, Any], why: str) -> None:
    """R16: a model can act on what it is told."""
    assert why in str(show_chart.problem(CHART | change))


def test_a_table_keeps_every_kind_of_cell(desk: Desk) -> None:
    said, call = called(show_table, desk, **TABLE)
    assert said == "The person sees the table 'Invoices': 2 rows."
    assert call.emitted[0].payload["data"] == TABLE
    assert call.emitted[0].payload["fallback"] == "Invoices. 2 rows of No, Paid."


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"rows": [["a", 1], ["b"]]}, "row 2 has 1 cells for 2 columns"),
        ({"rows": [["a", 1]] * 201}, "rows: Give at most 200 rows; there are 201"),
        ({"columns": []}, "columns: Give at least one"),
        ({"columns": ["x"] * 13}, "columns: Give at most 12 columns; there are 13"),
        ({"rows": [["a", {}]]}, "rows.0.1"),
    ],
)
def test_a_table_that_makes_no_sense_is_refused_with_the_reason(change: dict[str, Any], why: str) -> None:
    assert why in str(show_table.problem(TABLE | change))


def test_a_report_is_a_file_with_its_heading(desk: Desk) -> None:
    said, call = called(
        write_report, desk, name="q3.md", title="Third \n quarter", text="## Sums\n\n- **Four** twice.\n"
    )
    content = b"# Third quarter\n\n## Sums\n\n- **Four** twice.\n"
    assert call.saving == [("q3.md", content, "text/markdown", "Third quarter: **Four** twice.")]
    assert said == "The person can download q3.md (44 bytes)."


def test_a_report_asks_nobody_and_says_that_it_writes() -> None:
    """R18: without a gate, because nothing but the conversation changes; that it is no READ is shown."""
    assert (write_report.risk, write_report.approval, write_report.idempotent) == (Risk.WRITE, False, True)


@pytest.mark.parametrize("text", ["# Only a heading", "---\n", "\0\ud800", "x" * 1000])
def test_any_text_makes_a_summary_of_one_line_that_can_be_stored(desk: Desk, text: str) -> None:
    call = ToolCall(
        "report.write", write_report.input.model_construct(name="a", title="T", text=text), 1, desk.services, "1/0"
    )
    write_report.function(call)
    ((_, content, _, summary),) = call.saving
    assert content.decode()
    assert summary.encode()
    assert len(summary) < 200
    assert "\n" not in summary
    assert "\0" not in summary
    assert summary[-1] != ":"


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("q3.md", "q3.md"),
        ("q3", "q3.md"),
        ("notes.TXT", "notes.TXT"),
        ("data.csv", "data.csv.md"),
        ("../../etc/passwd", "etc-passwd.md"),
        ("a/b\\c:d*e.md", "a-b-c-d-e.md"),
        ("\u202egpj.md", "gpj.md"),
        (".bashrc", "bashrc.md"),
        ("Zürich 東京.md", "Zürich-東京.md"),
        ("...", "report.md"),
        ("\n\0.md", "report.md"),
        ("x" * 300 + ".md", "x" * 100 + ".md"),
    ],
)
def test_a_file_s_name_hides_nothing_and_leads_nowhere(asked: str, name: str) -> None:
    assert file_name(asked) == name
