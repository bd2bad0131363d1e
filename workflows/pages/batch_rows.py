"""How batches look: their lines in a few words each, and their counts in a sentence."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from conversations.display.faithful import first_line
from conversations.models import State
from workflows.batches.standing import DELETED, NOT_STARTED, WAITS, Standing, StandingLine
from workflows.definition import Workflow
from workflows.models import Batch
from workflows.records import short

RESULT_MOST = 240
"""Characters of a result in a row."""
FIELDS_MOST = 4
"""Fields of an input in a row."""
SAID = (
    (State.FAILED, "{} failed"),
    (State.CANCELLED, "{} stopped"),
    (NOT_STARTED, "{} not started"),
    (DELETED, "{} deleted"),
)


@dataclass(frozen=True)
class BatchSummary:
    """A batch in a list: its workflow, if that is installed, and how many of its lines are in each state."""

    batch: Batch
    workflow: Workflow | None
    counts: Counter[str]
    for_others: int = 0

    @property
    def title(self) -> str:
        """The title of the workflow."""
        return self.workflow.title if self.workflow else self.batch.workflow

    @property
    def words(self) -> str:
        """How it stands, such as "3 of 12 done, 1 waits for you, 2 failed"."""
        return counted(self.counts, self.for_others)


@dataclass(frozen=True)
class BatchRow:
    """A line in the table: its first fields, and how many there are `more`."""

    line: StandingLine
    fields: list[tuple[str, str]]
    more: int
    result: str


@dataclass(frozen=True)
class BatchPage:
    """The page of a batch."""

    standing: Standing
    rows: list[BatchRow]

    @property
    def words(self) -> str:
        """How it stands."""
        return counted(self.standing.counts, self.standing.for_others)

    @property
    def to_come(self) -> int:
        """How many lines have not had their turn yet."""
        return self.standing.counts[WAITS]


def batch_page(standing: Standing) -> BatchPage:
    """Return the page of a batch that stands so."""
    return BatchPage(standing, [_row(standing, line) for line in standing.lines])


def counted(counts: Counter[str], for_others: int = 0) -> str:
    """Say how many lines are in which state. `for_others`: how many of those that wait do so for somebody else."""
    waits = counts[State.WAITING] - for_others
    under_way = counts[State.RUNNING] + counts[State.QUEUED]
    said = [f"{counts[State.COMPLETED]} of {counts.total()} done"]
    said += [f"{waits} wait{'s' if waits == 1 else ''} for you"] if waits else []
    said += [f"{for_others} wait{'s' if for_others == 1 else ''} for somebody else"] if for_others else []
    said += [f"{under_way} under way"] if under_way else []
    said += [f"{asleep} sleeping"] if (asleep := counts[State.SLEEPING]) else []
    said += [words.format(counts[state]) for state, words in SAID if counts[state]]
    said += [f"{to_come} to come"] if (to_come := counts[WAITS]) else []
    return ", ".join(said)


def _row(standing: Standing, line: StandingLine) -> BatchRow:
    given = line.input or {}
    pairs = zip(standing.columns, standing.labels, strict=True)
    fields = [(label, short(given[name])) for name, label in pairs if name in given]
    words = first_line(line.reason or line.words, RESULT_MOST)
    return BatchRow(line, fields[:FIELDS_MOST], len(fields) - FIELDS_MOST, words)
