"""Journals for the engine's tests: one that crashes, and one that others write to as well."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from agents.engine.errors import Behind
from agents.engine.interfaces.journal import MemoryJournal, Record
from agents.engine.ledger import EMPTY, Ledger, Step
from agents.engine.outputs.kinds import Output
from agents.engine.outputs.timeline import Outputs

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


class Crash(BaseException):
    """The process died: whatever is not recorded is lost."""


@dataclass
class CrashPoint:
    """Where the process dies, once: before or after the n-th record, counted from 1 across all runs."""

    n: int
    after: bool = False
    count: int = 0


class CrashingJournal(MemoryJournal):
    """Keeps records until the crash point; after that nothing reaches it, as from a dead process."""

    def __init__(self, ledger: Ledger = EMPTY, crash: CrashPoint | None = None) -> None:
        super().__init__(ledger)
        self.crash, self.dead = crash, False

    async def record(self, record: Record) -> None:
        if self.dead:
            raise Crash
        if self.crash:
            self.crash.count += 1
            self.dead = self.crash.count == self.crash.n
        if self.dead and not (self.crash and self.crash.after):
            raise Crash
        self.records.append(record)
        if self.dead:
            raise Crash


class SharedJournal(CrashingJournal):
    """A journal that others append to: `push` steps before the next record, and its writer is Behind."""

    def __init__(self, ledger: Ledger = EMPTY) -> None:
        super().__init__(ledger)
        self.before: dict[int, Callable[[Ledger], list[Step]]] = {}
        self._pushed: list[Step] = []

    def push(self, n: int, steps: Callable[[Ledger], list[Step]]) -> None:
        """Append what `steps` makes of the ledger before the n-th record (from 1)."""
        self.before[n] = steps

    async def record(self, record: Record) -> None:
        others = self.before.pop(len(self.records) + 1, None)
        if others:
            added = numbered(self.ledger, others(self.ledger))
            self.before = {n + 1: f for n, f in self.before.items()}
            self.records.append(Record(tuple(added)))
            raise Behind(added, added[-1].id)
        assert record.steps[0].id == (self.ledger[-1].id + 1 if len(self.ledger) else 1)
        await super().record(record)


def numbered(ledger: Ledger, steps: Iterable[Step]) -> list[Step]:
    """The steps as others append them after this ledger."""
    last = ledger[-1].id if len(ledger) else 0
    return [
        Step(s.actor, s.type, s.payload, path=s.path, id=last + n, time=NOON.isoformat())
        for n, s in enumerate(steps, 1)
    ]


def kept_outputs(journal: CrashingJournal) -> list[Output]:
    """The outputs as database rows would hold them: those of each record replace earlier ones."""
    rows = {output.position: output for output in Outputs(journal.seeded).in_order()}
    for record in journal.records:
        rows |= {output.position: output for output in record.outputs}
    return sorted(rows.values(), key=lambda output: output.position)
