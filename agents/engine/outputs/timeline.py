"""The timeline of a turn: its outputs, folded from its steps. Folding a ledger again gives the same outputs."""

from __future__ import annotations

from collections.abc import Iterable

from agents.engine.ledger import Step
from agents.engine.outputs.kinds import Output, ToolOutput
from agents.engine.outputs.registry import Kind, find_kind
from agents.engine.paths import HUMAN, ancestors, is_gate, parent


class Outputs:
    """The outputs of one turn, kept up to date as steps arrive."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self._by_position: dict[int, Output] = {}
        self._at: dict[str, list[int]] = {}  # a path -> the positions of the outputs there
        self._entries: dict[str, int] = {}  # a path -> the position of the entry of the call there
        self._below: dict[str, list[int]] = {}  # a path -> the positions of the entries of calls directly below it
        self._parts: dict[str, list[int]] = {}  # the path of an entry -> the positions of what belongs to it
        self._returns = False  # whether the turn is that of a policy whose value people are shown
        for step in steps:
            self.add(step)

    def add(self, step: Step) -> Output | None:
        """Fold in a step. Returns the output it opened or changed; None if it affects none. Never raises."""
        if step.type == "action_call" and not step.path:
            self._returns = "site" in step.payload
        entry = self._touched(step)
        kind = find_kind(_kind_touched(step, entry))
        if kind is None or (kind.name == "result" and not self._returns):
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
        """Store an output, replacing its earlier version."""
        if output.position not in self._by_position:
            self._at.setdefault(output.path, []).append(output.position)
            self._parts.setdefault(output.parent, []).append(output.position)
            if isinstance(output, ToolOutput):
                self._entries[output.path] = output.position
                self._below.setdefault(parent(output.path), []).append(output.position)
        self._by_position[output.position] = output

    def at(self, path: str) -> list[Output]:
        """Return the outputs at exactly this path, by position."""
        return [self._by_position[position] for position in self._at.get(path, ())]

    def parts_of(self, path: str) -> list[Output]:
        """Return the outputs that belong to the entry at `path`: what its call emitted, or a policy shows within it."""
        return [self._by_position[position] for position in self._parts.get(path, ())]

    def entries_of(self, path: str) -> list[ToolOutput]:
        """Return the entries of the calls made directly below `path`, in call order."""
        found = [self._by_position[position] for position in self._below.get(path, ())]
        return [output for output in found if isinstance(output, ToolOutput)]

    def entry(self, path: str) -> ToolOutput | None:
        """Return the entry of the call at `path`, or None."""
        found = self._by_position.get(self._entries.get(path, 0))
        return found if isinstance(found, ToolOutput) else None

    def in_order(self) -> list[Output]:
        """Return the outputs in reading order."""
        return reading_order(self._by_position.values())

    def _touched(self, step: Step) -> ToolOutput | None:
        """Return the entry that the step affects: that of its own call or, for a gate, of the call above it."""
        found = self.entry(step.path)
        if found or not is_gate(step.path):
            return found
        above = self.entry(parent(step.path))
        if above and step.type == "action_call":
            return above if step.payload.get("policy") == HUMAN else None
        return above if above and above.approval and above.approval.path == step.path else None

    def _latest(self, kind: Kind, path: str) -> Output | None:
        """Return the last output of this kind at exactly this path, which the kind's own fold may change."""
        if kind.fold is None:
            return None
        return next((output for output in reversed(self.at(path)) if isinstance(output, kind.model)), None)

    def _parent(self, step: Step) -> str:
        """Return the path of the entry that a new output of this step belongs below."""
        paths = ancestors(parent(step.path) if step.type == "action_call" else step.path)
        return next((path for path in paths if self.entry(path)), "")


def _kind_touched(step: Step, entry: ToolOutput | None) -> str:
    """Return the name of the kind of output that a step opens or changes; `entry` is the entry that it affects.

    The ledger's own steps make the entries of calls, the outputs of unreadable answers, and the result of the turn.
    Every other step opens an output of the kind that has its type as its name, if there is one.
    """
    if entry is not None and step.path != entry.path:
        return "tool"  # steps at a gate change the entry of its call
    match step.type:
        case "action_call" | "action_start" | "action_deferred":
            return "tool"
        case "action_result" if not step.path:
            return "result"
        case "action_result":
            return "retry" if entry is None else "tool"
    return step.type


def reading_order(outputs: Iterable[Output]) -> list[Output]:
    """Sort outputs by position, with what a call emitted right after its entry (S24)."""
    below: dict[str, list[Output]] = {}
    for output in sorted(outputs, key=lambda o: o.position):
        below.setdefault(output.parent, []).append(output)

    def walk(path: str) -> Iterable[Output]:
        for output in below.get(path, ()):
            yield output
            if isinstance(output, ToolOutput):
                yield from walk(output.path)

    return list(walk(""))
