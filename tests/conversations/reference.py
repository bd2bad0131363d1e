"""A reference model of a turn on one page. The random programs of test_machine are compared with it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from agents.engine.ledger import JSON

GATED, FREE, READ, AGAIN, FAILS = "gated", "free", "read", "again", "fails"
KINDS = (GATED, FREE, READ, AGAIN, FAILS)
TOOLS = {GATED: "shell.run", FREE: "report.write", READ: "fx.read", AGAIN: "touch", FAILS: "pay"}
REFUSED = {"reject": "rejected", "expired": "expired"}
"""The result of a call by its decision."""
CLOSED = {"cancelled", "crash_loop"}
"""The result of a call that was open when its turn was stopped or failed."""


@dataclass
class Call:
    """One call that the model asked for. Its effect is counted under `name`; `edited` is a person's edit of it."""

    kind: str
    name: str
    decided: str = ""
    edited: str = ""
    answers: list[str] = field(default_factory=list)

    def agreed(self) -> tuple[str, float]:
        """The effects it may have, and how often at most."""
        if self.kind in (READ, AGAIN):
            return self.name, float("inf")
        first = self.kind == FREE or (self.kind == GATED and self.decided in ("approve", "edit"))
        return self.edited or self.name, int(first) + self.answers.count("run_again")

    def results(self, lost: int, closed: bool) -> set[str]:
        """Its possible results: "success", or the code of an error."""
        if self.decided in REFUSED:
            may = {REFUSED[self.decided]}
        elif self.answers and self.answers[-1] != "run_again":
            may = {self.answers[-1] if self.answers[-1] in ("it_ran", "it_did_not") else "interrupted"}
        elif self.kind == FAILS:
            may = {"failed"}
        else:
            may = {"success"}
        if self.kind == FAILS and lost:
            may |= {"interrupted"}
        return may | CLOSED if closed else may


@dataclass
class Turn:
    """One turn: its calls by path, how many workers it lost, and whether it was stopped."""

    calls: dict[str, Call] = field(default_factory=dict)
    lost: int = 0
    stopped: bool = False

    def ends(self) -> set[tuple[str, str]]:
        """How it may end."""
        given_up = {("failed", "crash_loop")} if self.lost > 2 else set()
        return ({("cancelled", "cancelled")} if self.stopped else {("completed", "text")}) | given_up


def payload(kind: str, name: str) -> dict[str, JSON]:
    """The input of a call."""
    if kind == GATED:
        return {"command": name}
    return {READ: {"a": int(name)}, FAILS: {"amount": 1}}.get(kind, {"name": name})


def program(said: str) -> list[list[list[str]]]:
    """The batches that a model asks for after this message: kind and name of each call."""
    batches: list[list[list[str]]] = json.loads(said)
    return batches
