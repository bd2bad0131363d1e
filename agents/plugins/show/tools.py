"""The tools that show people charts and tables. They change nothing but the page, so they need no approval."""

from __future__ import annotations

from typing import Any

from agents.categories import SHOW
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.plugins.show.figures import Chart, Table, describe_chart, describe_table


@tool("chart.show", risk=Risk.READ, category=SHOW, title="Show a chart", says=lambda asked: f"drew {asked.title}")
def show_chart(call: ToolCall[Chart]) -> str:
    """Show the person a bar or line chart in the conversation, above your next words. Do not repeat its figures.

    It draws the numbers that you give it: give only numbers that you have read or calculated.
    """
    chart = call.input
    call.widget("chart", chart.model_dump(mode="json"), describe_chart(chart))
    series = "" if len(chart.series) == 1 else f", {len(chart.series)} series"
    return f"The person sees the {chart.kind} chart {chart.title!r}: {_count(chart.labels, 'label')}{series}."


@tool("table.show", risk=Risk.READ, category=SHOW, title="Show a table", says=lambda asked: f"listed {asked.title}")
def show_table(call: ToolCall[Table]) -> str:
    """Show the person a table in the conversation, above your next words. Do not repeat its rows."""
    put_table(call, call.input)
    return f"The person sees the table {call.input.title!r}: {_count(call.input.rows, 'row')}."


def put_table(call: ToolCall[Any, Any], table: Table) -> None:
    """Show people a table, from within any tool."""
    call.widget("table", table.model_dump(mode="json"), describe_table(table))


def _count(things: list[Any], of: str) -> str:
    return f"{len(things)} {of}" if len(things) == 1 else f"{len(things)} {of}s"
