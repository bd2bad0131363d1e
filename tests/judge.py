"""The judge of S119: a turn that crashed and went on has the ledger of one that nothing disturbed.

Ids and times may differ, and how often something was started. The rest must be the same, in the same order: calls,
deferrals, pauses, decisions, outputs, results.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import zip_longest

from agents.engine.decisions import Ask, Decision
from agents.engine.ledger import JSON, Step
from agents.engine.paths import is_gate, parent
from agents.engine.view import opens_gate

Line = tuple[str, str, str, JSON]
"""What is compared of a step: its path, its actor, its type, its payload."""

MAY_DIFFER = {"action_start", "action_retry", "note"}
"""The types of the steps that a crash may add."""


def comparable(ledger: Iterable[Step]) -> list[Line]:
    """A ledger without ids, times, what a crash may add, and what another run draws differently."""
    steps = list(ledger)
    own = {s.path: s.payload.get("policy") for s in steps if s.type == "action_call" and s.actor.startswith("policy:")}
    return [
        (s.path, s.actor, s.type, _unnumbered(_without_chance(s, own.get(s.path))))
        for s in steps
        if s.type not in MAY_DIFFER
    ]


def _without_chance(step: Step, policy: str | None) -> JSON:
    """The payload, without the time at which a call began that only read, a drawn value, and the id of a file."""
    drawn = {
        "action_result": {"began"} if step.actor.startswith("tool:") else {"output"} if policy == "value" else set(),
        "file": {"file"} if policy == "file" else set(),
    }.get(step.type, set())
    return {key: value for key, value in step.payload.items() if key not in drawn}


def _unnumbered(value: JSON) -> JSON:
    if isinstance(value, dict):
        return {k: _unnumbered(v) for k, v in value.items() if not (k == "seq" and set(value) == {"seq", "digest"})}
    return [_unnumbered(each) for each in value] if isinstance(value, list) else value


def differences(ledger: Iterable[Step], undisturbed: Iterable[Step], *, side_by_side: bool = False) -> list[str]:
    """What differs between the ledgers, from the first line on; nothing if they are the same.

    Of a call that was interrupted, a card asks what became of it. Then the ledger has the card and the pause for it;
    other calls of the same answer may have been deferred meanwhile, and their results come later; and unless the call
    was run again, it has another result. Nothing else is excused. `side_by_side`: the turn makes calls at the same
    time, so that only the order at each path is the same.
    """
    steps, wanted = list(ledger), list(undisturbed)
    asked = {s.path for s in steps if _asks_what_became(s)}
    decided = [s for s in steps if s.path in asked and s.type != "action_call"]
    cards = {parent(s.path): s.payload.get("decision") for s in decided}
    lost = {path for path, decision in cards.items() if decision != Decision.RUN_AGAIN}
    batches = {parent(path) for path in cards}
    usual = {s.path for s in wanted if s.type == "action_deferred"}

    def is_excused(step: Step) -> bool:
        if step.type == "action_deferred":
            return step.path not in usual and parent(step.path) in batches
        return step.path in lost and step.type != "action_call"

    lines, expected = (comparable(s for s in _without(asked, each) if not is_excused(s)) for each in (steps, wanted))
    if cards and side_by_side:  # what ran beside an interrupted call had asked its model less often by then
        lines, expected = (list(map(_without_budget, each)) for each in (lines, expected))
    if cards or side_by_side:
        lines, expected = (sorted(each, key=lambda line: line[0]) for each in (lines, expected))
    differing = [(a, b) for a, b in zip_longest(lines, expected) if a != b]
    return [f"{line} instead of {expected}" for line, expected in differing]


def _without_budget(line: Line) -> Line:
    path, actor, type, payload = line
    if type not in ("pause", "resume"):
        return line
    return path, actor, type, {key: value for key, value in payload.items() if not key.startswith("steps_")}


def _asks_what_became(step: Step) -> bool:
    """Whether this card asks about an interrupted call. Others ask whether a call may run as somebody edited it."""
    return opens_gate(step) and is_gate(step.path) and step.payload["payload"].get("ask") == Ask.INTERRUPTED


def _without(interrupted: set[str], steps: Iterable[Step]) -> Iterator[Step]:
    """The steps without the cards at these paths, and the pauses as they would be without them."""
    gates, cards = set[str](), set[str]()
    paused = True
    for step in steps:
        asked = cards if step.path in interrupted else gates
        if opens_gate(step):
            asked.add(step.path)
        elif step.type == "action_result":
            asked.discard(step.path)
        if step.type == "pause":
            paused = bool(gates)
        if step.path in interrupted or (step.type in ("pause", "resume") and not paused):
            continue
        if step.type == "pause":
            count = step.payload["pending_action_count"] - len(cards)
            yield replace(step, payload=step.payload | {"pending_action_count": count})
        else:
            yield step
