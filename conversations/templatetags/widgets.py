"""What the templates of widgets draw from the data of a tool."""

from __future__ import annotations

from typing import Any

from django import template

from conversations.pages.drawing.chart import Drawing
from conversations.pages.drawing.table import Sheet

register = template.Library()


@register.filter
def as_chart(data: dict[str, Any]) -> Drawing:
    """See conversations.pages.drawing.chart.Drawing."""
    return Drawing(data)


@register.filter
def as_table(data: dict[str, Any]) -> Sheet:
    """See conversations.pages.drawing.table.Sheet."""
    return Sheet(data)
