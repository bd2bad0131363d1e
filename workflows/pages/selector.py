"""The selector: the workflows that a person sees, by category, and when they last ran each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from django.contrib.auth.models import User
from django.db.models import Max

from agents.categories import Category
from conversations.models import Prompt
from workflows.definition import Workflow
from workflows.running import seen_by

LATELY_MOST = 3
"""Workflows under "Used lately"."""
LATELY_FROM = 7
"""With fewer workflows than this, all are in view anyway."""


@dataclass(frozen=True)
class SelectorRow:
    """A workflow in the selector. `last`: the person's last run of it."""

    workflow: Workflow
    why_not: str | None
    last: Prompt | None

    @property
    def said(self) -> str:
        """What it does: the first paragraph of its description, in one line."""
        return " ".join(self.workflow.description.split("\n\n")[0].split())


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
    lately: list[SelectorRow]
    any: bool


def selector(user: User, query: str = "") -> Selector:
    """Return the workflows in which all words of the query occur, in name, title, description or category."""
    seen = seen_by(user)
    last = last_runs(user, [each.workflow for each in seen])
    rows = [SelectorRow(each.workflow, each.why_not, last.get(each.workflow.name)) for each in seen]
    words = query.casefold().split()
    found = [row for row in rows if all(word in _text(row.workflow) for word in words)]
    groups = groupby(found, lambda row: row.workflow.category)
    used = [row for row in rows if row.last and not row.why_not]
    lately = sorted(used, key=lambda row: row.last.pk if row.last else 0, reverse=True)[:LATELY_MOST]
    return Selector(
        query,
        [CategoryRows(category, list(group)) for category, group in groups],
        lately if len(rows) >= LATELY_FROM and not query else [],
        bool(rows),
    )


def last_runs(user: User, workflows: Sequence[Workflow]) -> dict[str, Prompt]:
    """Return this person's last run of each of these, by name."""
    names = {each.policy_name: each.name for each in workflows}
    own = Prompt.objects.visible_to(user).filter(policy__in=names).order_by()
    newest = own.values("policy").annotate(last=Max("pk")).values_list("last", flat=True)
    return {names[run.policy]: run for run in Prompt.objects.filter(pk__in=list(newest))}


def _text(workflow: Workflow) -> str:
    return " ".join((workflow.name, workflow.title, workflow.description, workflow.category.name)).casefold()
