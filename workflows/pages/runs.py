"""The history as a page: what each run was given, how it was started, how it stands, and what came of it in short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from urllib.parse import urlencode

from django.contrib.auth.models import User

from agents.engine.ledger import JSON
from agents.engine.root import WORKFLOW
from conversations.display.call import CallField
from conversations.display.faithful import first_line
from conversations.display.schema_form import label_for, properties_of
from conversations.display.when import span
from conversations.models import Origin, Prompt, State
from workflows import discovery, records
from workflows.definition import Workflow
from workflows.history import STARTED_BY, RunFilter, last_runs, runs_of
from workflows.pages.form import secret_fields
from workflows.running import seen_by
from workflows.stars import starred_runs

RUNS_MOST = 25
"""Runs on a page."""
RESULT_MOST = 160
"""Characters of a result in a row."""
FIELDS_MOST, LINE_MOST = 4, 160
"""Fields of an input in a row; characters of a line of a workflow that is not installed."""

STATES = (
    (State.QUEUED, "Queued"),
    (State.RUNNING, "Running"),
    (State.WAITING, "Waiting for a decision"),
    (State.SLEEPING, "Sleeping"),
    (State.COMPLETED, "Completed"),
    (State.FAILED, "Failed"),
    (State.CANCELLED, "Stopped"),
)
HOW = {
    Origin.API: "by the API",
    Origin.COMMAND: "by the command line",
    Origin.TRIGGER: "by a trigger",
}
"""How a run was started, where it was not from a page."""
STARTS = (("site", "The site"), ("api", "The API"), ("command", "The command line"), ("trigger", "A trigger"))


@dataclass(frozen=True)
class RunRow:
    """A run in the list. `input`: its first fields, `more` how many there are besides. `line`: instead of them, the
    line of a run of a workflow that is no longer installed; then `workflow` is None.

    `again`: its person may run it again with this input. `redacted`: its input was taken out. `result`: what it
    returned, or why it failed, in one line.
    """

    prompt: Prompt
    workflow: Workflow | None
    input: list[CallField]
    more: int
    line: str
    result: str
    starred: bool
    again: bool = False
    redacted: bool = False

    @property
    def name(self) -> str:
        """The name of its workflow."""
        return self.prompt.policy.removeprefix(WORKFLOW)

    @property
    def title(self) -> str:
        """The title of its workflow."""
        return self.workflow.title if self.workflow else self.name

    @property
    def how(self) -> str:
        """How it was started, if not from a page."""
        return HOW.get(Origin(self.prompt.origin), "")

    @property
    def took(self) -> str:
        """How long it took; "" while it has not ended."""
        ended = self.prompt.ended_at if self.prompt.ended else None
        return span((ended - self.prompt.created_at).total_seconds()) if ended else ""


@dataclass(frozen=True)
class RunsPage:
    """One page of runs, the newest first. `newer` and `older`: the runs beside which the pages before and after begin;
    None where there is no such page.
    """

    rows: list[RunRow]
    newer: int | None
    older: int | None


@dataclass(frozen=True)
class RunsFilter:
    """The filters of the page: what was chosen, and the workflows to choose from, those that the person has run.

    `page_of`: the name of the workflow whose page it is; "": all.
    """

    chosen: RunFilter
    workflows: Sequence[tuple[str, str]]
    page_of: str = ""
    states = STATES
    starts = STARTS

    @property
    def any(self) -> bool:
        """Whether some runs of the page are left out."""
        return self.chosen != RunFilter(workflow=self.page_of)

    @property
    def query(self) -> str:
        """What was chosen, as the query of an address."""
        chosen = self.chosen
        told = {
            "q": chosen.search,
            "workflow": chosen.workflow,
            "state": chosen.state,
            "started_by": chosen.started_by,
            "starred": "1" if chosen.starred else "",
        }
        return urlencode({name: value for name, value in told.items() if value})


def runs_filter(user: User, given: Mapping[str, str], page_of: str = "") -> RunsFilter:
    """Return the filters that an address names. A choice that does not exist is none. `page_of`: of this workflow."""
    installed, mine = discovery.installed(), last_runs(user)
    workflow = page_of or given.get("workflow", "")
    names = {*mine, workflow} - {""}
    listed = sorted((installed[name].title if name in installed else name, name) for name in names)
    state, started_by = given.get("state", ""), given.get("started_by", "")
    chosen = RunFilter(
        workflow=workflow,
        state=state if state in State.values else "",
        started_by=started_by if started_by in STARTED_BY else "",
        starred=bool(given.get("starred")),
        search=given.get("q", "").strip(),
    )
    return RunsFilter(chosen, [(name, title) for title, name in listed], page_of)


def runs_page(user: User, chosen: RunFilter, before: int | None = None, after: int | None = None) -> RunsPage:
    """Return a page of this person's runs: those next before the run `before`, or next after `after`; or the newest."""
    runs = runs_of(user, chosen).select_related("conversation")
    if after is not None:
        later = list(runs.filter(pk__gt=after).order_by("pk")[: RUNS_MOST + 1])
        if len(later) > RUNS_MOST:
            shown = later[:RUNS_MOST][::-1]
            return RunsPage(_rows(user, shown), shown[0].pk, shown[-1].pk)
        before = None
    found = list((runs.filter(pk__lt=before) if before else runs)[: RUNS_MOST + 1])
    shown = found[:RUNS_MOST]
    newer = shown[0].pk if shown and before else None
    return RunsPage(_rows(user, shown), newer, shown[-1].pk if len(found) > RUNS_MOST else None)


def last_rows(workflow: Workflow, user: User, most: int) -> list[RunRow]:
    """Return this person's last runs of a workflow."""
    return _rows(user, list(runs_of(user, RunFilter(workflow.name)).select_related("conversation")[:most]))


def inputs_of(workflow: Workflow, runs: Sequence[Prompt]) -> dict[int, dict[str, JSON]]:
    """Return the recorded inputs of these runs of a workflow by prompt, without secrets; see records."""
    secret = secret_fields(workflow)
    given = records.inputs_of(runs).items()
    return {run: {name: value for name, value in input.items() if name not in secret} for run, input in given}


def _rows(user: User, runs: Sequence[Prompt]) -> list[RunRow]:
    if not runs:
        return []
    results, starred = records.results_of(runs), starred_runs(user, runs)
    inputs: dict[int, dict[str, JSON]] = {}
    for policy, group in groupby(sorted(runs, key=lambda run: run.policy), lambda run: run.policy):
        if known := discovery.installed().get(policy.removeprefix(WORKFLOW)):
            inputs |= inputs_of(known, list(group))
    may = {each.workflow.policy_name for each in seen_by(user) if each.why_not is None}
    return [
        _row(run, inputs.get(run.pk), _told(results, run), starred=run.pk in starred, may=run.policy in may)
        for run in runs
    ]


def _told(results: Mapping[int, records.RunResult], run: Prompt) -> str:
    """Return what came of a run in one line. Who stopped one knows what came of it."""
    found = results.get(run.pk)
    return first_line(found.words, RESULT_MOST) if found and run.state != State.CANCELLED else ""


def _row(run: Prompt, given: Mapping[str, JSON] | None, result: str, *, starred: bool, may: bool) -> RunRow:
    workflow = discovery.installed().get(run.policy.removeprefix(WORKFLOW))
    if workflow is None:
        return RunRow(run, None, [], 0, first_line(run.input or "", LINE_MOST), result, starred)
    known, given_now = properties_of(workflow.schema), given or {}
    named = [*(name for name in known if name in given_now), *(name for name in given_now if name not in known)]
    fields = [
        CallField(label_for(name, str(known.get(name, {}).get("title", ""))), records.short(given_now[name]))
        for name in named
    ]
    return RunRow(
        run,
        workflow,
        fields[:FIELDS_MOST],
        len(fields) - FIELDS_MOST,
        "",
        result,
        starred,
        again=may and given is not None,
        redacted=given is None,
    )
