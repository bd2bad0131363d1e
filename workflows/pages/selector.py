"""The selector: the workflows that a person sees, by category, what each needs, and how their last run ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

from django.contrib.auth.models import User

from agents.categories import Category
from conversations.display.schema_form import properties_of
from conversations.models import Prompt
from workflows.definition import Workflow
from workflows.history import last_runs
from workflows.pages.form import secret_fields
from workflows.running import seen_by
from workflows.stars import starred_workflows

RECENT_MOST = 5
"""Workflows under "Recent"."""
RECENT_FROM = 7
"""With fewer workflows than this, all are in view anyway."""
JUMPS_FROM = 7
"""With fewer categories than this, there are no links to them at the top."""


@dataclass(frozen=True)
class SelectorRow:
    """A workflow in the selector. `last`: the person's last run of it."""

    workflow: Workflow
    why_not: str | None
    last: Prompt | None
    starred: bool

    @property
    def said(self) -> str:
        """What it does: the first paragraph of its description, in one line."""
        return " ".join(self.workflow.description.split("\n\n")[0].split())

    @property
    def needs(self) -> str:
        """What it takes to run it."""
        return needs(self.workflow)


@dataclass(frozen=True)
class CategoryRows:
    """A category with its workflows."""

    category: Category
    rows: Sequence[SelectorRow]


@dataclass(frozen=True)
class Selector:
    """What the page shows. `any`: there are workflows, whether or not the search found one."""

    query: str
    categories: list[CategoryRows]
    starred: list[SelectorRow]
    recent: list[SelectorRow]
    any: bool

    @property
    def jumps(self) -> bool:
        """Whether links at the top lead to the categories."""
        return len(self.categories) >= JUMPS_FROM


def selector(user: User, query: str = "") -> Selector:
    """Return the workflows in which all words of the query occur, in name, title, description or category."""
    seen, last, starred = seen_by(user), _last(user), starred_workflows(user)
    rows = [
        SelectorRow(each.workflow, each.why_not, last.get(each.workflow.name), each.workflow.name in starred)
        for each in seen
    ]
    words = query.casefold().split()
    found = [row for row in rows if all(word in _text(row.workflow) for word in words)]
    groups = groupby(found, lambda row: row.workflow.category)
    used = [row for row in rows if row.last and not row.why_not]
    recent = sorted(used, key=lambda row: row.last.pk if row.last else 0, reverse=True)[:RECENT_MOST]
    return Selector(
        query,
        [CategoryRows(category, list(group)) for category, group in groups],
        [row for row in rows if row.starred] if not query else [],
        recent if len(rows) >= RECENT_FROM and not query else [],
        bool(rows),
    )


@cache
def needs(workflow: Workflow) -> str:
    """Return what it takes to run a workflow, as far as that is declared: "4 fields · asks before it starts"."""
    fields = len(properties_of(workflow.schema))
    found = ["no input" if not fields else "1 field" if fields == 1 else f"{fields} fields"]
    if secret_fields(workflow):
        found.append("takes a secret")
    if workflow.workspace:
        found.append("works in a chat of yours" if workflow.workspace == "required" else "can work in a chat of yours")
    if workflow.confirm:
        found.append("asks before it starts")
    return " · ".join(found)


def _last(user: User) -> dict[str, Prompt]:
    """Return this person's last run of each workflow, by its name."""
    last = last_runs(user)
    runs = Prompt.objects.visible_to(user).in_bulk(list(last.values()))
    return {name: runs[pk] for name, pk in last.items() if pk in runs}


def _text(workflow: Workflow) -> str:
    return " ".join((workflow.name, workflow.title, workflow.description, workflow.category.name)).casefold()
