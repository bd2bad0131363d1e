"""Where a turn is recorded. One record is one transaction."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from agents.engine.ledger import EMPTY, Ledger, Step
from agents.engine.outputs.kinds import Output


@dataclass(frozen=True)
class Record:
    """Steps that happened together, the outputs they changed as they are after them, and new snapshots by sha256."""

    steps: tuple[Step, ...]
    outputs: tuple[Output, ...] = ()
    snapshots: dict[str, str] = field(default_factory=dict)


class Journal(Protocol):
    """Keeps records, each whole or not at all."""

    async def record(self, record: Record) -> None:
        """Append a record whose first step follows the last one kept.

        Raises Behind where others appended meanwhile, Fenced where another worker owns the turn; then nothing was kept.
        """
        ...


class MemoryJournal:
    """Keeps records in memory: for tests, and for `run()` without a site."""

    def __init__(self, ledger: Ledger = EMPTY) -> None:
        self.seeded = ledger
        self.records: list[Record] = []

    async def record(self, record: Record) -> None:
        """Nobody else writes here, so it never refuses."""
        self.records.append(record)

    @property
    def ledger(self) -> Ledger:
        """Everything recorded so far, after what it was seeded with."""
        return self.seeded.extend(step for record in self.records for step in record.steps)
