"""The chain of digests over one conversation's steps, whether they are in the database or in a file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from agents.engine.ledger import canonical
from conversations.ledger.place import chain_digest
from conversations.ledger.redacted import KeptStep, parsed, sha256, still_has_content
from conversations.verification.rules import LedgerProblem, reporting_errors

BROKEN = "the chain is broken: this step, or the one before it, is not what was recorded"


@dataclass(frozen=True, slots=True)
class RedactedPayload:
    """The SHA-256 of a redacted payload, which the chain covers, and of the payload that replaced it.

    `left` is None in exports of format version 1, which do not have it.
    """

    sha256: str
    left: str | None


@dataclass
class Chain:
    """A walk along the chain from its first step. `kept` holds the digests of each redacted payload, by seq; `seen`
    are those of them that were passed.
    """

    kept: dict[int, RedactedPayload] = field(default_factory=dict)
    seq: int = 0
    head: str = ""
    seen: set[int] = field(default_factory=set)

    def add(self, row: KeptStep) -> list[LedgerProblem]:
        """Return what is wrong with the next step. Steps count from 1 without gaps, each chained to the one before.

        A break is reported once. Never raises, whatever the step contains.
        """
        problems: list[LedgerProblem] = []
        with reporting_errors(problems, row.seq):
            problems += self._wrong(row)
        self.seq, self.head = row.seq, row.digest
        return problems

    def _wrong(self, row: KeptStep) -> Iterator[LedgerProblem]:
        if row.seq != self.seq + 1:
            yield LedgerProblem(row.seq, f"follows step {self.seq}: there is a gap")
        was, now = self.kept.get(row.seq), sha256(row.payload)
        if row.digest != chain_digest(self.head, row.step(), row.prompt, was.sha256 if was else now):
            yield LedgerProblem(row.seq, BROKEN)
        if (payload := parsed(row.payload)) is None or canonical(payload) != row.payload:
            yield LedgerProblem(row.seq, "the payload is not canonical JSON")
        if was:
            self.seen.add(row.seq)
            if still_has_content(row):
                yield LedgerProblem(row.seq, "was redacted, but still has content")
            if was.left not in (None, now):
                yield LedgerProblem(row.seq, "was redacted, but is not what the redaction left")

    def end(self) -> Iterator[LedgerProblem]:
        """Yield what is wrong after the last step."""
        for seq in sorted(self.kept.keys() - self.seen):
            yield LedgerProblem(seq, "was redacted, but is missing")
