"""The figures of approvals in the admin: what became of what people were asked, by tool and by person."""

from __future__ import annotations

from dataclasses import dataclass

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from agents.engine.paths import HUMAN
from conversations.accounts.names import names_of
from conversations.admin.base import ReadOnly
from conversations.approvals.permissions import DECIDE_OTHERS
from conversations.display.call import title_of
from conversations.pages.approvals.inbox import QUESTION
from conversations.usage.approvals import Tally, figures

PERIODS = (7, 30, 90)
"""The days that can be chosen."""
ROWS_MOST = 100
"""Rows of a table. What was asked, or decided, least is left out."""


@dataclass(frozen=True)
class FiguresRow:
    """A tool or a person, with what became of the questions about or to them. `id`: the tool's own name."""

    name: str
    tally: Tally
    id: str = ""


def may_see_figures(request: HttpRequest) -> bool:
    """Whether this person sees everybody's approvals, in the admin."""
    return request.user.is_active and request.user.is_staff and request.user.has_perm(DECIDE_OTHERS)


class FiguresPage(ReadOnly):
    """The page of the figures, beside the list of approvals."""

    def get_urls(self) -> list[URLPattern]:
        """Add the page."""
        view = self.admin_site.admin_view(self.figures_view)
        return [path("figures/", view, name="conversations_approval_figures"), *super().get_urls()]

    def figures_view(self, request: HttpRequest) -> HttpResponse:
        """Show the figures of the last days that `days` names; of 30 if it is no period."""
        if not may_see_figures(request):
            raise PermissionDenied
        days = next((each for each in PERIODS if request.GET.get("days") == str(each)), 30)
        found = figures(days)
        names = names_of(found.people, request.user)
        tables = {
            "tools": [FiguresRow(_title(tool), each, tool) for tool, each in found.tools.items()],
            "people": [
                FiguresRow("You" if names[by] == "you" else names[by], each) for by, each in found.people.items()
            ],
        }
        context = {
            "title": "Figures of approvals",
            "days": days,
            "periods": PERIODS,
            "all": found.all,
            "tables": {name: (rows[:ROWS_MOST], len(rows) - ROWS_MOST) for name, rows in tables.items()},
        }
        return self.page(request, "approval/figures", context)


def _title(tool: str) -> str:
    return QUESTION if tool == HUMAN else title_of(tool)
