"""The timeline of a turn: its outputs, a fold of the steps. Folding a ledger again gives the same outputs."""

from __future__ import annotations

from collections.abc import Iterable

from agents.engine.ledger import Step
from agents.engine.outputs.kinds import Output, ToolOutput
from agents.engine.outputs.registry import Kind, find_kind
from agents.engine.paths import HUMAN, ancestors, is_gate, parent


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
        entry = self._touched(step)
        kind = find_kind(_kind_touched(step, entry))
        if kind is None:
            return None
        before = entry if kind.name == "tool" else self._latest(kind, step.path)
        after = kind.after(before, step)
        if after is None or after is before:
            return None
        if (before is None or after.position != before.position) and (above := self._parent(step)):
            after = after.model_copy(update={"parent": above})
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

    def _touched(self, step: Step) -> ToolOutput | None:
        """The entry of the call that the step belongs to; the gates of a call stand one step below it."""
        found = self.entry(step.path)
        if found or not is_gate(step.path):
            return found
        above = self.entry(parent(step.path))
        if above and step.type == "action_call":
            return above if step.payload.get("policy") == HUMAN else None
        return above if above and above.approval and above.approval.path == step.path else None

    def _latest(self, kind: Kind, path: str) -> Output | None:
        """The last output of this kind at this very path, which a rule of its own may change."""
        if kind.fold is None:
            return None
        return next((output for output in reversed(self.at(path)) if isinstance(output, kind.model)), None)

    def _parent(self, step: Step) -> str:
        """The entry that a new output of this step stands below."""
        opens_entry = step.type == "action_call"
        paths = ancestors(parent(step.path) if opens_entry and step.path else step.path)
        return next((path for path in paths if path in self._entries), "")


def _kind_touched(step: Step, entry: ToolOutput | None) -> str:
    """The name of the kind of output that a step opens or changes; `entry` is that of the call it belongs to.

    The record's own steps make the entries of calls, and of answers that could not be read. Every other step opens an
    output of the kind of its own name, where there is one.
    """
    if entry is not None and step.path != entry.path:
        return "tool"  # whatever stands at its gate is the gate's
    match step.type:
        case "action_call" | "action_start" | "action_deferred":
            return "tool"
        case "action_result":
            return "retry" if entry is None else "tool"
    return step.type


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
