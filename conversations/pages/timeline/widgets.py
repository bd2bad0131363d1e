"""Widgets: what a tool emits for people to look at, rendered by the template of that name if there is one."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from agents.engine.ledger import JSON
from conversations.display.html_cache import cached_html

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Widget:
    """A widget that a tool emitted. An app renders widgets by adding a template `widgets/<name>.html`.

    `redacted`: its content was redacted and there is nothing to render. A tool may also emit a widget without data.
    """

    name: str
    data: dict[str, JSON]
    fallback: str
    redacted: bool = False

    @property
    def html(self) -> SafeString | None:
        """The widget rendered from its `data`; None if the fallback text must be shown instead."""
        if self.redacted or not re.fullmatch(r"[A-Za-z0-9-]+", self.name):
            return None
        try:
            return cached_html(self._render, "widget", self.name, self.data, self.fallback)
        except TemplateDoesNotExist:
            return None
        except Exception:
            logger.exception(
                "the widget %r could not be drawn", self.name
            )  # its data may not be what the template expects
            return None

    def _render(self) -> SafeString:
        return render_to_string(f"widgets/{self.name}.html", {"data": self.data, "fallback": self.fallback})
