"""The journal: where a turn is recorded. One record is one transaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from agents.engine.ledger import EMPTY, Ledger, Step
from agents.engine.outputs.kinds import Output


@dataclass(frozen=True)
class Record:
    """Steps written together, the outputs they changed in their new state, and new snapshots by SHA-256.

    `uses` names what the decisions among the steps use up, once for each time. A record that uses something up holds no
    start: nothing begins before it is certain that the decision stands. `gives_back` names what earlier decisions used
    up for calls that, by this record, never start.
    """

    steps: tuple[Step, ...]
    outputs: tuple[Output, ...] = ()
    snapshots: dict[str, str] = field(default_factory=dict)
    uses: tuple[str, ...] = ()
    gives_back: tuple[str, ...] = ()


class Journal(Protocol):
    """Stores records, each whole or not at all."""

    async def record(self, record: Record) -> None:
        """Append a record whose first step follows the last stored one.

        Raises Behind if others have appended steps since, Fenced if another worker owns the turn, and UsedUp if
        something that it uses is used up. Nothing is stored then.
        """
        ...


class MemoryJournal:
    """A journal in memory, for tests and for `run()` without a site."""

    def __init__(self, ledger: Ledger = EMPTY) -> None:
        self.seeded = ledger
        self.records: list[Record] = []

    async def record(self, record: Record) -> None:
        """Append a record. Never raises, because nobody else writes here."""
        self.records.append(record)

    def go_on_from(self, ledger: Ledger) -> None:
        """Take over what was added to its ledger elsewhere, such as a decision; if it is empty, all of this ledger.

        Raises ValueError for a ledger that does not begin with its own.
        """
        held = self.ledger.numbered()
        if ledger.steps[: len(held)] != held.steps:
            raise ValueError("this journal holds another ledger: pass a new MemoryJournal(), or go on from its ledger")
        if added := ledger.steps[len(held) :]:
            self.records.append(Record(added, ()))

    @property
    def ledger(self) -> Ledger:
        """The ledger it was seeded with, followed by everything recorded since."""
        return self.seeded.extend(step for record in self.records for step in record.steps)
