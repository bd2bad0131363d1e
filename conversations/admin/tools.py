"""The catalogue of tools in the admin: what is declared of each, what a model reads of it, and who used it how often.

Nobody else is shown which tools there are (R8).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse

from agents.engine.ledger import JSON
from agents.engine.tools.tool import is_tool_name
from agents.inventory import ToolEntry, catalogue
from conversations.admin.base import ReadOnly
from conversations.display.risk import RISKS_TO_FILTER, is_red
from conversations.ledger.offered import offered_tool
from conversations.models import Output, ToolUse
from conversations.usage.tools import ToolCounts, called_at, callers, counts_by_tool, counts_of, last_call

ASKS = {"no": "Never", "by rule": "By rule", "yes": "Always"}
"""When a person is asked, by the gate in the inventory."""
SORTS = {"": "Name", "month": "Calls in 30 days", "all": "All calls", "priority": "Priority"}


@dataclass(frozen=True)
class Row:
    """A tool in the list. `entry` is None for one that was used and is not installed."""

    name: str
    entry: ToolEntry | None
    counts: ToolCounts

    @property
    def offered(self) -> str:
        """When models have it, in words."""
        if self.entry is None:
            return "Not installed"
        if not self.entry.offered:
            return "When a plugin adds it" if self.entry.added_by else "To workflows and policies"
        return "With a skill" if self.entry.skills else "From the beginning"

    @property
    def offered_with(self) -> str:
        """The names of the plugins that add it, or of the skills without which it is withheld."""
        return ", ".join((self.entry.skills if self.entry.offered else self.entry.added_by) if self.entry else [])

    @property
    def asks(self) -> str:
        """When a person is asked, in words."""
        return ASKS[self.entry.gate] if self.entry else ""

    @property
    def risk(self) -> str:
        """What a call can do, in words."""
        return RISKS_TO_FILTER[self.entry.risk] if self.entry else ""

    @property
    def risk_class(self) -> str:
        """The class of its badge."""
        if not self.entry or self.entry.risk == "read":
            return ""
        return "risk-high" if is_red(self.risk) else "risk-write"

    @property
    def texts(self) -> str:
        """What a search looks through."""
        entry = self.entry
        return " ".join([self.name, *([entry.wire_name, entry.title, entry.description] if entry else [])]).casefold()


@dataclass(frozen=True)
class Filter:
    """A filter of the list: its parameter, what it is called, its values with their words, and the chosen one."""

    name: str
    title: str
    choices: Sequence[tuple[str, str]]
    chosen: str


@admin.register(ToolUse)
class ToolAdmin(ReadOnly):
    """The pages of the catalogue: a list, and a page for each tool."""

    def has_view_permission(self, request: HttpRequest, obj: ToolUse | None = None) -> bool:
        """Whether the person may see the catalogue."""
        return request.user.has_perm("conversations.view_tooluse")

    def get_urls(self) -> list[URLPattern]:
        """Return the list, and the page of a tool by its name."""
        view = self.admin_site.admin_view
        return [
            path("", view(self.list_view), name="conversations_tooluse_changelist"),
            path("<str:tool>/", view(self.tool_view), name="conversations_tooluse_tool"),
        ]

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Show the tools that match the search and the filters."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        rows = _rows()
        asked = {name: request.GET.get(name, "").strip() for name in ("q", "sort", *FILTERS)}
        shown = [row for row in rows if _matches(row, asked)]
        shown.sort(key=lambda row: _rank(row, asked["sort"]))
        context = {
            "title": "Tools",
            "rows": shown,
            "total": len(rows),
            "q": asked["q"],
            "filters": [*(_filter(name, rows, asked[name]) for name in FILTERS), _sorting(asked["sort"])],
            "filtered": any(asked.values()),
        }
        return self.page(request, "tool/list", context)

    def tool_view(self, request: HttpRequest, tool: str) -> HttpResponse:
        """Show a tool. 404 for a name that was never that of a tool which ran."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        entry = next((entry for entry in catalogue() if entry.name == tool), None)
        counts = counts_of(tool) if entry or is_tool_name(tool) else ToolCounts()
        if not entry and not _was_installed(tool, counts):
            raise Http404(f"There is no tool {tool!r}, and none of this name ever ran.")
        last = last_call(tool, counts)
        context = {
            "title": entry.title if entry else tool,
            "row": Row(tool, entry, counts),
            "periods": [("Last 30 days", counts.month), ("In all", counts.all)],
            "callers": callers(tool),
            "last": called_at(last) if last else None,
            "last_turn": _address_of(request, last),
            "read": _read(entry, tool, last),
            "tool_seconds": settings.AGENTSITE_TOOL_SECONDS,
            "approval_hours": settings.AGENTSITE_APPROVAL_HOURS,
        }
        return self.page(request, "tool/tool", context)


@dataclass(frozen=True)
class Read:
    """What a model reads of a tool."""

    name: str
    description: str
    schema: str


def _read(entry: ToolEntry | None, tool: str, last: Output | None) -> Read | None:
    """Return what a model reads of the tool; of one that is not installed, what the last round that called it read."""
    if entry:
        return Read(entry.wire_name, entry.description, _pretty(entry.schema))
    then = offered_tool(last.conversation_id, last.prompt_id, last.path, tool) if last else None
    return Read(then.name, then.description, _pretty(then.schema)) if then else None


def _pretty(schema: dict[str, JSON]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False)


def _rows() -> list[Row]:
    """Return the tools that are installed, and those that were used and are not installed any more."""
    counts = counts_by_tool()
    entries = {entry.name: entry for entry in catalogue()}
    gone = [name for name in counts if name not in entries and _was_installed(name, counts[name])]
    return [Row(name, entries.get(name), counts.get(name, ToolCounts())) for name in sorted([*entries, *gone])]


def _was_installed(name: str, counts: ToolCounts) -> bool:
    """Whether a tool of this name ever ran. Models also ask for names that they made up, and none of those succeeds."""
    return counts.all.succeeded > 0 and is_tool_name(name)


FILTERS: dict[str, tuple[str, Callable[[Row], str]]] = {
    "category": ("Category", lambda row: row.entry.category if row.entry else ""),
    "risk": ("Risk", lambda row: row.risk),
    "asks": ("Asks a person", lambda row: row.asks),
    "offered": ("Offered", lambda row: row.offered),
    "owner": ("Owner", lambda row: row.entry.owner if row.entry else ""),
}
"""The filters by their parameters: what each is called, and its value in a row."""


def _matches(row: Row, asked: dict[str, str]) -> bool:
    words = asked["q"].casefold().split()
    return all(word in row.texts for word in words) and all(
        not asked[name] or value(row) == asked[name] for name, (_, value) in FILTERS.items()
    )


def _rank(row: Row, sort: str) -> tuple[int, str]:
    ranks = {
        "month": row.counts.month.calls,
        "all": row.counts.all.calls,
        "priority": row.entry.priority if row.entry else 0,
    }
    return -ranks.get(sort, 0), row.name


def _filter(name: str, rows: Sequence[Row], chosen: str) -> Filter:
    """Return a filter that offers the values there are; and one that was asked for, though no tool has it."""
    title, value = FILTERS[name]
    values = sorted({value(row) for row in rows} - {""} | ({chosen} - {""}))
    return Filter(name, title, [("", "All"), *((each, each) for each in values)], chosen)


def _sorting(chosen: str) -> Filter:
    return Filter("sort", "Sort by", list(SORTS.items()), chosen)


def _address_of(request: HttpRequest, last: Output | None) -> str:
    """Return the page of the turn with the last call; "" if the person may not read the record."""
    if last is None or not request.user.has_perm("conversations.view_prompt"):
        return ""
    return reverse("admin:conversations_prompt_change", args=[last.prompt_id])
