"""The runs of a workflow: what each was given, how it stands, and what came of it in short."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import QuerySet

from agents.engine.ledger import JSON, canonical
from agents.engine.outputs.kinds import ResultOutput, TextOutput
from conversations.accounts import names
from conversations.display.call import CallField, displayed_result
from conversations.display.faithful import first_line
from conversations.display.schema_form import label_for, properties_of
from conversations.display.schema_parsing import label_of
from conversations.display.when import span
from conversations.ledger.redacted import is_redacted
from conversations.models import Origin, Output, Prompt, State, Step
from workflows.definition import Workflow
from workflows.pages.form import secret_fields

RUNS_MOST = 25
"""Runs on a page."""
RESULT_MOST = 160
"""Characters of a result in a row."""
FIELDS_MOST, FIELD_MOST = 4, 60
"""Fields of an input in a row, and characters of each."""
PAGE_MOST = 10_000
"""The last page that is looked for."""


@dataclass(frozen=True)
class RunRow:
    """A run in the list. `input`: its first fields, `more` how many there are besides.

    `redacted`: its input was taken out. `result`: what it returned, or why it failed, in one line.
    """

    prompt: Prompt
    who: str
    input: list[CallField]
    more: int
    result: str
    redacted: bool = False

    @property
    def took(self) -> str:
        """How long it took; "" while it has not ended."""
        ended = self.prompt.ended_at if self.prompt.ended else None
        return span((ended - self.prompt.created_at).total_seconds()) if ended else ""


@dataclass(frozen=True)
class RunsPage:
    """One page of runs, from 1 on. `more`: there are older ones."""

    rows: list[RunRow]
    number: int
    more: bool


def runs_of(workflow: Workflow, user: User) -> QuerySet[Prompt]:
    """Return this person's runs of a workflow, the newest first."""
    return Prompt.objects.visible_to(user).filter(policy=workflow.policy_name).order_by("-pk")


def runs_page(workflow: Workflow, user: User, number: int) -> RunsPage:
    """Return a page of this person's runs."""
    number = min(max(number, 1), PAGE_MOST)
    start = (number - 1) * RUNS_MOST
    runs = runs_of(workflow, user).select_related("conversation", "asked_by")
    found = list(runs[start : start + RUNS_MOST + 1])
    shown = found[:RUNS_MOST]
    inputs, results = inputs_of(workflow, shown), _results(shown)
    rows = [_row(workflow, user, run, inputs.get(run.pk), results.get(run.pk, "")) for run in shown]
    return RunsPage(rows, number, len(found) > RUNS_MOST)


def inputs_of(workflow: Workflow, runs: Iterable[Prompt]) -> dict[int, dict[str, JSON]]:
    """Return the recorded inputs of these runs by prompt, without secrets; a redacted one is left out."""
    secret = secret_fields(workflow)
    calls = Step.objects.of(*runs).filter(path="", type="action_call")
    found = {}
    for prompt, text in calls.values_list("prompt", "payload"):
        if not is_redacted(text):
            given = workflow.given(json.loads(text)["payload"])
            found[prompt] = {name: value for name, value in given.items() if name not in secret}
    return found


def _row(workflow: Workflow, user: User, run: Prompt, given: Mapping[str, JSON] | None, result: str) -> RunRow:
    known, given_now = properties_of(workflow.schema), given or {}
    named = [*(name for name in known if name in given_now), *(name for name in given_now if name not in known)]
    fields = [
        CallField(label_for(name, str(known.get(name, {}).get("title", ""))), _short(given_now[name])) for name in named
    ]
    return RunRow(run, _who(run, user), fields[:FIELDS_MOST], len(fields) - FIELDS_MOST, result, redacted=given is None)


def _short(value: JSON) -> str:
    """Return a value in a few words."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = ", ".join(map(str, value))
    if isinstance(value, dict | list):
        value = canonical(value)
    return first_line(label_of(value), FIELD_MOST) or "empty"


def _who(run: Prompt, user: User) -> str:
    """Return who started a run, for its owner."""
    if run.origin == Origin.TRIGGER or run.asked_by is None:
        return Origin(run.origin).label
    name = "You" if run.asked_by == user else names.display_name(run.asked_by)
    return f"{name}, by the API" if run.origin == Origin.API else name


def _results(runs: list[Prompt]) -> dict[int, str]:
    """Return what each of these runs returned, or why it failed, in one line."""
    if not runs:
        return {}
    found = {}
    for row in Output.objects.of(*runs).filter(path="", type__in=["result", "text"]).order_by("position"):
        entry = row.entry()
        if isinstance(entry, ResultOutput):
            text, fields = displayed_result(entry.output)
            words = text or ", ".join(f"{each.name}: {first_line(each.text, FIELD_MOST)}" for each in fields)
            found[row.prompt_id] = first_line(words, RESULT_MOST)
        elif isinstance(entry, TextOutput) and entry.role_hint == "system":
            found[row.prompt_id] = first_line(entry.text, RESULT_MOST)
    ended = {run.pk for run in runs if run.state in (State.COMPLETED, State.FAILED)}
    return {prompt: words for prompt, words in found.items() if prompt in ended}
