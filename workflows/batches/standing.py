"""How a batch stands: what each line was given, the state of its run, and what came of it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef

from agents.engine.execution.gates import ANOTHER
from agents.engine.ledger import JSON, canonical
from agents.engine.secrets import hide
from conversations.approvals.permissions import DECIDE_OWN
from conversations.models import Output, Prompt, State
from workflows import discovery, records
from workflows.batches.starting import why_waits
from workflows.batches.table import Column, columns_of, written
from workflows.definition import Workflow
from workflows.models import Batch, BatchLine
from workflows.records import RunResult

WAITS, NOT_STARTED, DELETED = "waits", "not_started", "deleted"
"""States of a line that has no run: its turn is still to come, it never comes, or the run was deleted."""
STATES = [*State.values, WAITS, NOT_STARTED, DELETED]
"""All states of a line: those of its run, or one of these."""
REDACTED = "redacted"
PIECE = re.compile(r"[^;\t\r\n]+")
"""What is a cell of its own if a spreadsheet separates cells by semicolons or tabs."""
FORMULA = re.compile(r'[\s"\u00ad\u200b-\u200f\u2060\ufeff]*[=+\-@＝＋－＠]')  # noqa: RUF001 - the wide ones count too
"""The beginning of a cell that a spreadsheet would compute."""
NUMBER = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True)
class StandingLine:
    """A line of a batch. `input` None: it was deleted or redacted with its run. `result`: what the run returned.

    `words`: the same for people. `reason`: why it failed, or was not started.
    """

    number: int
    input: Mapping[str, JSON] | None
    state: str
    run: Prompt | None = None
    result: str = ""
    words: str = ""
    reason: str = ""

    @property
    def redacted(self) -> bool:
        """Whether its run is there and its input is not."""
        return self.input is None and self.run is not None


@dataclass(frozen=True)
class Standing:
    """A batch and its lines. `workflow` None: it is no longer installed. `holds`: why no line can start now.

    `for_others`: how many of the lines that wait for a decision wait for somebody else's, see for_others.
    """

    batch: Batch
    workflow: Workflow | None
    lines: list[StandingLine]
    holds: str | None = None
    counts: Counter[str] = field(default_factory=Counter)
    for_others: int = 0

    @property
    def title(self) -> str:
        """The title of the workflow."""
        return self.workflow.title if self.workflow else self.batch.workflow

    @property
    def columns(self) -> list[str]:
        """The fields that its lines name, in the order of the form."""
        named = {name: None for line in self.lines for name in line.input or ()}
        known = [each.name for each in self._known]
        return [*(name for name in known if name in named), *(name for name in named if name not in known)]

    @property
    def labels(self) -> list[str]:
        """What people read for these."""
        labels = {each.name: each.label for each in self._known}
        return [labels.get(name, name) for name in self.columns]

    @property
    def _known(self) -> list[Column]:
        return columns_of(self.workflow) if self.workflow else []

    def cells(self, line: StandingLine) -> list[str]:
        """Return the cells of a line, below `columns`, as they would stand in the table."""
        known = {each.name: each for each in self._known}
        return [_cell(known.get(name), (line.input or {}).get(name)) for name in self.columns]

    @property
    def under_way(self) -> int:
        """How many of its runs have not ended."""
        return sum(self.counts[state] for state in (State.QUEUED, State.RUNNING, State.WAITING, State.SLEEPING))

    @property
    def ended(self) -> bool:
        """Whether nothing of it runs, and nothing is still to come."""
        return not (self.under_way or self.counts[WAITS])

    @property
    def version(self) -> str:
        """What changes with everything that its page shows."""
        shown = [(line.state, line.result, line.reason) for line in self.lines]
        return sha256(repr((self.holds, self.for_others, shown)).encode()).hexdigest()


def standing_of(batch: Batch) -> Standing:
    """Return how a batch stands now."""
    rows = list(batch.lines.select_related("prompt__conversation").order_by("number"))
    runs = [row.prompt for row in rows if row.prompt]
    inputs, results = records.inputs_of(runs), records.results_of(runs)
    lines = [_line(row, inputs, results) for row in rows]
    counts = Counter(line.state for line in lines)
    holds = why_waits(batch) if counts[WAITS] else None
    others = for_others([batch], batch.user)[batch.pk] if counts[State.WAITING] else 0
    return Standing(batch, discovery.installed().get(batch.workflow), lines, holds, counts, others)


def counts_of(batches: Iterable[Batch]) -> dict[int, Counter[str]]:
    """Return how many lines of each batch are in each state, by batch."""
    counts: dict[int, Counter[str]] = {batch.pk: Counter() for batch in batches}
    rows = BatchLine.objects.filter(batch__in=counts).select_related("prompt")
    for row in rows.only("batch", "started_at", "why_not", "prompt__state"):
        counts[row.batch_id][_state(row)] += 1
    return counts


def for_others(batches: Iterable[Batch], user: User) -> Counter[int]:
    """Return how many lines of each batch wait for somebody else than this person, by batch: as the sidebar counts."""
    waiting = BatchLine.objects.filter(batch__in=[batch.pk for batch in batches], prompt__state=State.WAITING)
    if user.has_perm(DECIDE_OWN):
        theirs = Output.objects.pending().filter(prompt=OuterRef("prompt")).exclude(who=ANOTHER)
        waiting = waiting.exclude(Exists(theirs))
    return Counter(waiting.values_list("batch", flat=True))


def _line(row: BatchLine, inputs: Mapping[int, dict[str, JSON]], results: Mapping[int, RunResult]) -> StandingLine:
    state, run = _state(row), row.prompt
    if run is None:
        given = json.loads(row.input) if row.input else None
        return StandingLine(row.number, given, state, None, reason=row.why_not)
    given, result = inputs.get(run.pk), results.get(run.pk, RunResult())
    if state == State.COMPLETED:
        return StandingLine(row.number, given, state, run, result.text, result.words)
    return StandingLine(row.number, given, state, run, reason=result.words)


def _state(row: BatchLine) -> str:
    if row.prompt:
        return row.prompt.state
    if row.started_at:
        return DELETED
    return NOT_STARTED if row.why_not else WAITS


def _cell(column: Column | None, value: JSON) -> str:
    if value is None:
        return ""
    if column:
        return column.cell(value)
    return value if isinstance(value, str) else canonical(value)


def results_csv(standing: Standing) -> str:
    """Return the results as CSV, in which no cell is a formula."""
    rows = [["line", *standing.columns, "state", "result", "reason"]]
    for line in standing.lines:
        given = [REDACTED if line.redacted else cell for cell in standing.cells(line)]
        rows.append([str(line.number), *given, line.state, line.result, line.reason])
    return written([[safe(hide(cell)) for cell in row] for row in rows])


def safe(cell: str) -> str:
    """Return a cell that no spreadsheet computes, whatever separates cells there.

    An apostrophe is put before what could be a formula.
    """
    return PIECE.sub(lambda piece: _safe(piece[0]), cell)


def _safe(piece: str) -> str:
    return f"'{piece}" if FORMULA.match(piece) and not NUMBER.fullmatch(piece) else piece
