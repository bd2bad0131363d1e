"""Widgets: what a tool emits for people to look at, rendered by the template of that name if there is one."""

from __future__ import annotations

import logging
import re

from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from agents.engine.outputs.kinds import WidgetOutput
from conversations.display.html_cache import cached_html
from conversations.pages.timeline.blocks import Block

logger = logging.getLogger(__name__)


def widget_html(block: Block) -> SafeString | None:
    """Return the widget of a block, rendered from its data; None if its fallback text must be shown instead.

    An app renders widgets by adding a template `widgets/<name>.html`. If the content was redacted, there is nothing to
    render; a tool may also emit a widget without data.
    """
    entry = block.entry
    if not isinstance(entry, WidgetOutput) or block.redacted or not re.fullmatch(r"[A-Za-z0-9-]+", entry.widget):
        return None
    context = {"data": entry.data, "fallback": entry.fallback}
    try:
        return cached_html(
            lambda: render_to_string(f"widgets/{entry.widget}.html", context), "widget", entry.widget, context
        )
    except TemplateDoesNotExist:
        return None
    except Exception:  # its data may not be what the template expects
        logger.exception("the widget %r could not be drawn", entry.widget)
        return None
