"""Widgets: what a tool gives people to look at, drawn by a template of its name where there is one."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass

from django.template import TemplateDoesNotExist
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from agents.engine.ledger import JSON

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Widget:
    """What a tool emitted. An app draws widgets of a name by a template `widgets/<name>.html`.

    `redacted`: its content was taken out, and there is nothing to draw. A tool may well give no data either.
    """

    name: str
    data: dict[str, JSON]
    fallback: str
    redacted: bool = False

    @property
    def html(self) -> SafeString | None:
        """The widget, drawn from its `data`; None where its words must do."""
        if self.redacted or not re.fullmatch(r"[A-Za-z0-9-]+", self.name):
            return None
        try:
            return render_to_string(f"widgets/{self.name}.html", {"data": self.data, "fallback": self.fallback})
        except TemplateDoesNotExist:
            return None
        except Exception:
            logger.exception("the widget %r could not be drawn", self.name)  # of data that its template cannot take
            return None
