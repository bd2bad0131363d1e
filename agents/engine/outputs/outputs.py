"""What people see: the outputs, a fold of the steps. Folding a ledger again gives the same outputs."""

from __future__ import annotations

from collections.abc import Iterable

from agents.engine.ledger import Step
from agents.engine.outputs.fold import fold
from agents.engine.outputs.kinds import (
    Approval,
    Deferred,
    Failure,
    FileOutput,
    Frozen,
    Output,
    Pending,
    ReasoningOutput,
    RetryOutput,
    Running,
    Success,
    TextOutput,
    ToolOutput,
    ToolResult,
    WidgetOutput,
    check_kind,
    forget_kind,
    load_output,
    register_kind,
)
from agents.engine.paths import HUMAN, ancestors, is_gate, parent

__all__ = [
    "Approval",
    "Deferred",
    "Failure",
    "FileOutput",
    "Frozen",
    "Output",
    "Outputs",
    "Pending",
    "ReasoningOutput",
    "RetryOutput",
    "Running",
    "Success",
    "TextOutput",
    "ToolOutput",
    "ToolResult",
    "WidgetOutput",
    "check_kind",
    "fold",
    "forget_kind",
    "load_output",
    "reading_order",
    "register_kind",
]


class Outputs:
    """The outputs of one turn, kept along the way as steps arrive."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self._by_position: dict[int, Output] = {}
        self._entries: dict[str, int] = {}  # a call's path -> the position of the entry it opened
        self._at: dict[str, list[int]] = {}  # a path -> the outputs that stand there
        self._below: dict[str, list[int]] = {}  # a path -> the entries of the calls made directly below it
        for step in steps:
            self.add(step)

    def add(self, step: Step) -> Output | None:
        """Fold one step in. Returns the output it opened or changed; None if it touches none (never raises)."""
        before = self._touched(step)
        after = fold(before, step, self._parent(step))
        if after is None or after is before:
            return None
        self.put(after)
        return after

    def put(self, output: Output) -> None:
        """Keep an output, in place of its earlier self."""
        if output.position not in self._by_position:
            self._at.setdefault(output.path, []).append(output.position)
            if isinstance(output, ToolOutput):
                self._entries[output.path] = output.position
                self._below.setdefault(parent(output.path), []).append(output.position)
        self._by_position[output.position] = output

    def at(self, path: str) -> list[Output]:
        """The outputs at this very path, by position."""
        return [self._by_position[position] for position in self._at.get(path, ())]

    def entries_of(self, path: str) -> list[ToolOutput]:
        """The entries of the calls made directly below `path`, in call order."""
        found = [self._by_position[position] for position in self._below.get(path, ())]
        return [output for output in found if isinstance(output, ToolOutput)]

    def entry(self, path: str) -> ToolOutput | None:
        """The entry that the call at `path` opened."""
        position = self._entries.get(path)
        found = self._by_position.get(position) if position is not None else None
        return found if isinstance(found, ToolOutput) else None

    def in_order(self) -> list[Output]:
        """The timeline in reading order."""
        return reading_order(self._by_position.values())

    def __len__(self) -> int:
        return len(self._by_position)

    def _touched(self, step: Step) -> Output | None:
        """An entry is found by its call's path; the gates of a call stand one step below it."""
        found = self.entry(step.path)
        if found or not is_gate(step.path):
            return found
        above = self.entry(parent(step.path))
        if above and step.type == "action_call":
            return above if step.payload.get("policy") == HUMAN else None
        return above if above and above.approval and above.approval.path == step.path else None

    def _parent(self, step: Step) -> str:
        """The entry that a new output of this step stands below."""
        opens_entry = step.type == "action_call"
        paths = ancestors(parent(step.path) if opens_entry and step.path else step.path)
        return next((path for path in paths if path in self._entries), "")


def reading_order(outputs: Iterable[Output]) -> list[Output]:
    """An entry, then what its call emitted, by position (S24)."""
    below: dict[str, list[Output]] = {}
    for output in sorted(outputs, key=lambda o: o.position):
        below.setdefault(output.parent, []).append(output)

    def walk(path: str) -> Iterable[Output]:
        for output in below.get(path, ()):
            yield output
            if isinstance(output, ToolOutput):
                yield from walk(output.path)

    return list(walk(""))
