"""Workflows and their runs as JSON for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from django.contrib.auth.models import User

from agents.engine.agent.projection import render
from agents.engine.ledger import JSON
from agents.engine.outputs.kinds import ResultOutput, TextOutput
from conversations.display.faithful import first_line
from conversations.display.json import prompt_head
from conversations.models import Output, Prompt
from workflows.definition import Workflow
from workflows.permissions import SeenWorkflow
from workflows.stars import starred_runs

RESULT_MOST = 200
"""Characters of a result in a list of runs."""


def workflow_json(seen: SeenWorkflow[Workflow]) -> dict[str, JSON]:
    """Return one workflow, for the person who sees it."""
    workflow = seen.workflow
    return {
        "name": workflow.name,
        "title": workflow.title,
        "description": workflow.description,
        "category": workflow.category.id,
        "schema": workflow.schema,
        "permission": seen.permission or None,
        "may_run": seen.why_not is None,
        "why_not": seen.why_not,
        "confirm": workflow.confirm,
        "schedulable": workflow.schedulable,
    }


def categories_json(found: Iterable[SeenWorkflow[Workflow]]) -> list[dict[str, JSON]]:
    """Return the categories of these workflows in their order, each with how many of these are in it."""
    categories = [each.workflow.category for each in found]
    counts = Counter(each.id for each in categories)
    first = {each.id: each for each in reversed(categories)}
    ordered = sorted(first.values(), key=lambda each: (each.order, each.name, each.id))
    return [
        {"id": each.id, "name": each.name, "icon": each.icon, "order": each.order, "count": counts[each.id]}
        for each in ordered
    ]


def runs_json(user: User, runs: Sequence[Prompt]) -> list[dict[str, JSON]]:
    """Return these runs of this person, without their outputs, with what came of each in short."""
    results, starred = results_of(runs), starred_runs(user, runs)
    return [{**prompt_head(run), "result": results.get(run.pk), "starred": run.pk in starred} for run in runs]


def results_of(runs: Sequence[Prompt]) -> dict[int, str]:
    """Return what came of those of these runs that have ended, by prompt, in one line."""
    found = {}
    ended = [run for run in runs if run.ended]
    for row in Output.objects.of(*ended).filter(path="", type__in=["result", "text"]).order_by("position"):
        entry = row.entry()
        if isinstance(entry, ResultOutput):
            found[row.prompt_id] = first_line(render(entry.output), RESULT_MOST)
        elif isinstance(entry, TextOutput):
            found[row.prompt_id] = first_line(entry.text, RESULT_MOST)
    return found
