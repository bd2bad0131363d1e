"""Filters for the templates of widgets: drawing a tool's data."""

from __future__ import annotations

from typing import Any

from django import template

from conversations.pages.drawing.chart import DrawnChart
from conversations.pages.drawing.table import DrawnTable

register = template.Library()


@register.filter
def as_chart(data: dict[str, Any]) -> DrawnChart:
    """Return a tool's data as a chart to draw."""
    return DrawnChart(data)


@register.filter
def as_table(data: dict[str, Any]) -> DrawnTable:
    """Return a tool's data as a table to draw."""
    return DrawnTable(data)
