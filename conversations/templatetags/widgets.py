"""Filters for the templates of widgets: drawing a tool's data."""

from __future__ import annotations

from typing import Any

from django import template

from conversations.pages.drawing.chart import Drawing
from conversations.pages.drawing.table import Sheet

register = template.Library()


@register.filter
def as_chart(data: dict[str, Any]) -> Drawing:
    """Return a tool's data as a chart to draw."""
    return Drawing(data)


@register.filter
def as_table(data: dict[str, Any]) -> Sheet:
    """Return a tool's data as a table to draw."""
    return Sheet(data)
