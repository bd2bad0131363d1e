"""Checking a ledger in a file, without a database: the chain, the rules of turns, the fold, and every byte."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import get_type_hints

from agents.engine.ledger import JSON, Step, canonical
from conversations.ledger.prompt_row import PromptStanding
from conversations.ledger.redacted import MARK, KeptStep, sha256
from conversations.verification.chain import Chain, RedactedPayload
from conversations.verification.ledger_file import FORMAT, VERSION, last_line
from conversations.verification.rules import LedgerProblem, problems_of, reporting_errors

SHAPE: dict[str, type] = get_type_hints(KeptStep)


@dataclass
class Exported:
    """The contents of a file, and the problems in it: at a step, or at 0 if they concern no step."""

    problems: list[LedgerProblem] = field(default_factory=list)
    version: int = 0
    prompts: dict[int, dict[str, JSON]] = field(default_factory=dict)
    snapshots: dict[str, str] = field(default_factory=dict)
    chain: Chain = field(default_factory=Chain)
    turns: dict[int, list[Step]] = field(default_factory=dict)
    steps: int = 0

    def report(self, seq: int, what: str) -> None:
        """Add a problem."""
        self.problems.append(LedgerProblem(seq, what))

    def read(self, line: bytes, number: int) -> None:
        """Read one of the lines before the last."""
        entry = _parsed(line)
        if entry is None:
            self.report(0, f"line {number} is not a canonical JSON object")
        elif number == 1:
            self._header(entry)
        elif "seq" in entry:
            self._step(entry, number)
        elif self.steps:
            self.report(self.chain.seq, f"line {number} is among the steps, but is not a step")
        else:
            self._preamble(entry, number)

    def _header(self, entry: dict[str, JSON]) -> None:
        """Read the first line: the format and its version."""
        version = entry.get("version")
        if entry.get("format") == FORMAT and type(version) is int and 1 <= version <= VERSION:
            self.version = version

    def _preamble(self, entry: dict[str, JSON], number: int) -> None:
        """Read a line before the steps: a prompt, a snapshot or a redaction."""
        if type(pk := entry.get("prompt")) is int:
            self.prompts[pk] = entry
        elif isinstance(name := entry.get("snapshot"), str):
            self.snapshots[name] = str(entry.get("text"))
        elif isinstance(redaction := entry.get("redaction"), dict) and type(seq := redaction.get("seq")) is int:
            left = str(redaction.get("left_sha256")) if self.version > 1 else None
            self.chain.kept[seq] = RedactedPayload(str(redaction.get("sha256")), left)
        else:
            self.report(0, f"line {number} is of an unknown kind")

    def _step(self, entry: dict[str, JSON], number: int) -> None:
        self.steps += 1
        if set(entry) != set(SHAPE) or any(type(entry[name]) is not kind for name, kind in SHAPE.items()):
            self.report(self.chain.seq, f"line {number} is not a step")
            return
        row = KeptStep(**entry)
        self.problems += self.chain.add(row)
        self.turns.setdefault(row.prompt, []).append(row.step())

    def check_turn(self, pk: int) -> None:
        """Check a turn, once all lines are read."""
        steps, prompt = self.turns.get(pk, []), self.prompts.get(pk)
        last = steps[-1].id if steps else 0
        if prompt is None or not steps:
            self.report(last, f"prompt {pk} is {'not listed' if steps else 'without steps'}")
            return
        self.problems += problems_of(steps)
        with reporting_errors(self.problems, last):
            self.problems += _totals(prompt, steps, self.version)
        for step in steps:
            with reporting_errors(self.problems, step.id):
                self.problems += _snapshot(step, self.snapshots)


def verify_file(lines: Iterable[bytes]) -> Exported:
    """Check everything about the ledger in these lines. Never raises, whatever they contain."""
    found, digest, last = Exported(), hashlib.sha256(), b""
    for number, line in enumerate(lines):
        if last:
            digest.update(last)
            found.read(last, number)
        last = line
    chain = found.chain
    if last != last_line(chain.seq, chain.head, found.steps, digest.hexdigest()).encode():
        found.report(0, "the last line does not match the lines before it: some were changed or are missing")
    if not found.version:
        found.report(0, f"this is not a ledger in the format {FORMAT}, version 1 to {VERSION}")
    found.problems += chain.end()
    for pk in sorted(found.prompts.keys() | found.turns.keys()):
        with reporting_errors(found.problems, 0):
            found.check_turn(pk)
    found.problems.sort(key=lambda problem: problem.seq)
    return found


def _parsed(line: bytes) -> dict[str, JSON] | None:
    """Return the canonical JSON object in this line; None if there is none."""
    with suppress(ValueError, RecursionError):
        entry = json.loads(line)
        if isinstance(entry, dict) and canonical(entry) + "\n" == line.decode():
            return entry
    return None


def _totals(prompt: dict[str, JSON], steps: list[Step], version: int) -> Iterator[LedgerProblem]:
    """Check that the prompt's line is what its steps add up to."""
    for name, value in PromptStanding().after(steps).columns().items():
        if name == "pauses" and version < 3:
            continue
        if prompt.get(name) != value:
            yield LedgerProblem(
                steps[-1].id, f"{name} of prompt {prompt['prompt']} is {prompt.get(name)!r}, not {value!r}"
            )


def _snapshot(step: Step, snapshots: dict[str, str]) -> Iterator[LedgerProblem]:
    name = step.payload.get("snapshot") if step.type == "action_start" else None
    if name and not (step.payload.get(MARK) and name not in snapshots) and sha256(snapshots.get(name, "")) != name:
        yield LedgerProblem(step.id, f"the snapshot {str(name)[:12]} is missing, or differs from what the model saw")
