"""Checking a ledger in a file, without a database: the chain, the rules of turns, the fold, and every byte."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
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
    kept: dict[int, RedactedPayload] = field(default_factory=dict)
    turns: dict[int, list[Step]] = field(default_factory=dict)
    steps: int = 0
    seq: int = 0
    head: str = ""


def verify_file(lines: Iterable[bytes]) -> Exported:
    """Check everything about the ledger in these lines. Never raises, whatever they contain."""
    found, digest, chain, last = Exported(), hashlib.sha256(), None, b""
    for number, line in enumerate(lines, 1):
        if last:
            digest.update(last)
            entry = _parsed(last, number - 1, found)
            if number == 2:
                _header(entry, found)
            elif entry and "seq" in entry:
                chain = chain or Chain(found.kept)
                _step(entry, number - 1, chain, found)
            elif entry:
                _preamble(entry, number - 1, chain, found)
        last = line
    chain = chain or Chain(found.kept)
    found.seq, found.head = chain.seq, chain.head
    if last != last_line(chain.seq, chain.head, found.steps, digest.hexdigest()).encode():
        found.problems.append(
            LedgerProblem(0, "the last line does not match the lines before it: some were changed or are missing")
        )
    if not found.version:
        found.problems.append(LedgerProblem(0, f"this is not a ledger in the format {FORMAT}, version 1 to {VERSION}"))
    found.problems += chain.end()
    for pk in sorted(found.prompts.keys() | found.turns.keys()):
        with reporting_errors(found.problems, 0):
            _turn(pk, found)
    found.problems.sort(key=lambda problem: problem.seq)
    return found


def _parsed(line: bytes, number: int, found: Exported) -> dict[str, JSON]:
    try:
        entry = json.loads(line)
        if isinstance(entry, dict) and canonical(entry) + "\n" == line.decode():
            return entry
    except (ValueError, RecursionError):
        pass
    found.problems.append(LedgerProblem(0, f"line {number} is not a canonical JSON object"))
    return {}


def _header(entry: dict[str, JSON], found: Exported) -> None:
    """Read the first line: the format and its version."""
    version = entry.get("version")
    if entry.get("format") == FORMAT and type(version) is int and 1 <= version <= VERSION:
        found.version = version


def _preamble(entry: dict[str, JSON], number: int, chain: Chain | None, found: Exported) -> None:
    """Read a line before the steps: a prompt, a snapshot or a redaction."""
    if chain:
        found.problems.append(LedgerProblem(chain.seq, f"line {number} is among the steps, but is not a step"))
    elif type(pk := entry.get("prompt")) is int:
        found.prompts[pk] = entry
    elif isinstance(name := entry.get("snapshot"), str):
        found.snapshots[name] = str(entry.get("text"))
    elif isinstance(redaction := entry.get("redaction"), dict) and type(seq := redaction.get("seq")) is int:
        left = str(redaction.get("left_sha256")) if found.version > 1 else None
        found.kept[seq] = RedactedPayload(str(redaction.get("sha256")), left)
    else:
        found.problems.append(LedgerProblem(0, f"line {number} is of an unknown kind"))


def _step(entry: dict[str, JSON], number: int, chain: Chain, found: Exported) -> None:
    found.steps += 1
    if set(entry) != set(SHAPE) or any(type(entry[name]) is not kind for name, kind in SHAPE.items()):
        found.problems.append(LedgerProblem(chain.seq, f"line {number} is not a step"))
        return
    row = KeptStep(**entry)
    found.problems += chain.add(row)
    found.turns.setdefault(row.prompt, []).append(row.step())


def _turn(pk: int, found: Exported) -> None:
    steps, prompt = found.turns.get(pk, []), found.prompts.get(pk)
    last = steps[-1].id if steps else 0
    if prompt is None or not steps:
        found.problems.append(LedgerProblem(last, f"prompt {pk} is {'not listed' if steps else 'without steps'}"))
        return
    found.problems += problems_of(steps)
    with reporting_errors(found.problems, last):
        found.problems += _totals(prompt, steps)
    for step in steps:
        with reporting_errors(found.problems, step.id):
            found.problems += _snapshot(step, found.snapshots)


def _totals(prompt: dict[str, JSON], steps: list[Step]) -> Iterator[LedgerProblem]:
    """Check that the prompt's line is what its steps add up to."""
    for name, value in PromptStanding().after(steps).columns().items():
        if prompt.get(name) != value:
            yield LedgerProblem(
                steps[-1].id, f"{name} of prompt {prompt['prompt']} is {prompt.get(name)!r}, not {value!r}"
            )


def _snapshot(step: Step, snapshots: dict[str, str]) -> Iterator[LedgerProblem]:
    name = step.payload.get("snapshot") if step.type == "action_start" else None
    if name and not (step.payload.get(MARK) and name not in snapshots) and sha256(snapshots.get(name, "")) != name:
        yield LedgerProblem(step.id, f"the snapshot {str(name)[:12]} is missing, or differs from what the model saw")
