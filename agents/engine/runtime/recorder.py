"""The recorder of a running turn: steps are staged, then written to the journal together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace

from agents.engine.closing import cancelled_gate, given_back
from agents.engine.errors import Behind, Cancelled, Halt, Unrecorded, UsedUp
from agents.engine.interfaces.journal import Journal, Record
from agents.engine.interfaces.services import Services
from agents.engine.ledger import JSON, Step
from agents.engine.outputs.kinds import Output
from agents.engine.outputs.timeline import Outputs
from agents.engine.secrets import hide_in_step
from agents.engine.view import View


class Recorder:
    """A turn's steps so far, as an index (`view`) and as outputs, including staged ones that are not recorded yet.

    `last_id` is the last id used in the whole conversation; a step gets its id when it is staged.
    """

    def __init__(
        self,
        journal: Journal,
        services: Services,
        steps: Iterable[Step],
        last_id: int | None,
        states: dict[str, dict[str, JSON]] | None,
    ) -> None:
        self.journal, self.services = journal, services
        self.view = View(steps, states)
        self.outputs = Outputs(self.view.steps)
        self.last_id = max((s.id for s in self.view.steps), default=0) if last_id is None else last_id
        self.stopped: Halt | None = Cancelled() if self.view.cancelled() else None
        self._staged: list[Step] = []
        self._changed: dict[int, Output] = {}
        self._snapshots: dict[str, str] = {}
        self._known: set[str] = set()  # the snapshots that it has recorded
        self._uses: dict[str, tuple[str, ...]] = {}  # what a staged decision uses up, by the path of its gate
        self._lock = asyncio.Lock()

    def stage(
        self,
        *steps: Step,
        snapshots: Mapping[str, str] | None = None,
        uses: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        """Add steps to the turn, without secrets; the next flush records them.

        `uses`: what decisions among them use up, by the path of the gate. Flush before anything rests on one: a
        decision whose means are used up by then is taken out.
        """
        for step in steps:
            self.last_id += 1
            said, now = hide_in_step(step.actor, step.type, step.payload), self.services.now().isoformat()
            placed = Step.recorded(
                actor=step.actor, type=step.type, payload=said, path=step.path, id=self.last_id, time=now
            )
            self._staged.append(placed)
            self.view.add(placed)
            if changed := self.outputs.add(placed):
                self._changed[changed.position] = changed
        self._snapshots |= {name: text for name, text in (snapshots or {}).items() if name not in self._known}
        self._uses |= uses or {}

    async def flush(self, closing: bool = False) -> None:
        """Record the staged steps together. Raises the Halt that stopped the turn, unless `closing`.

        Raises Unrecorded for any error of the journal: then they stay staged.
        """
        async with self._lock:
            while self._staged:
                if self.stopped and not closing:
                    raise self.stopped
                try:
                    await self._record()
                except Behind as behind:
                    self.absorb(behind.steps, behind.last_id, closing=closing)
                except UsedUp as used:
                    self._take_out(used.name, closing=closing)
                except Halt as halt:
                    self.stopped = self.stopped or halt
                    raise
                except Exception as error:
                    raise Unrecorded(error) from error
            if self.stopped and not closing:  # absorbing may have dropped everything that was staged
                raise self.stopped

    async def _record(self) -> None:
        record = self._next_record()
        await self.journal.record(record)
        self._staged = self._staged[len(record.steps) :]
        kept = {output.position: output for output in record.outputs}
        self._changed = {at: output for at, output in self._changed.items() if kept.get(at) is not output}
        self._known |= record.snapshots.keys()
        self._snapshots = {k: v for k, v in self._snapshots.items() if k not in self._known}

    def _next_record(self) -> Record:
        """Return the next record: all staged steps, or those before a start and a decision that uses something up."""
        steps, changed = tuple(self._staged[: self._before_a_start()]), self._changed
        if len(steps) < len(self._staged):
            outputs = Outputs(self._recorded())
            changed = {output.position: output for step in steps if (output := outputs.add(step))}
        uses = tuple(name for step in steps for name in self._used_by(step))
        return Record(steps, tuple(changed.values()), dict(self._snapshots), uses, given_back(self.view, steps))

    def _before_a_start(self) -> int:
        """Return how many staged steps may be recorded together: no start stands beside what is used up."""
        starts = uses = False
        for count, step in enumerate(self._staged):
            starts, uses = starts or step.type == "action_start", uses or bool(self._used_by(step))
            if starts and uses:
                asks = self._used_by(step) and self._staged[count - 1].path == step.path
                return count - 1 if asks else count  # a gate that nobody is asked at stands with its decision
        return len(self._staged)

    def _used_by(self, step: Step) -> tuple[str, ...]:
        return self._uses.get(step.path, ()) if step.type == "action_result" else ()

    def _recorded(self) -> list[Step]:
        return self.view.steps[: len(self.view.steps) - len(self._staged)]

    def _take_out(self, name: str, *, closing: bool) -> None:
        """Take out the last staged decision that uses this up, so that people are asked.

        If `closing`, the turn ends with this: its gate is closed instead.
        """
        last = max(at for at, step in enumerate(self._staged) if name in self._used_by(step))
        gate, first = self._staged[last].path, self._staged[0].id
        instead = [cancelled_gate(gate)] if closing else []
        del self._uses[gate]
        staged = self._unstage(self._recorded(), first - 1)
        self.stage(*staged[:last], *instead, *staged[last + 1 :])

    def _unstage(self, recorded: list[Step], last_id: int) -> list[Step]:
        """Begin again after these recorded steps; return what was staged, which is staged no more."""
        staged, self._staged, self._changed = self._staged, [], {}
        self.view = View(recorded, self.view.before)
        self.outputs = Outputs(self.view.steps)
        self.last_id = last_id
        return staged

    def absorb(self, steps: Iterable[Step], last_id: int, *, closing: bool = False) -> None:
        """Insert the steps that others appended before the staged ones. If they stop the turn, `stopped` is set.

        Some staged steps are dropped: those that are there by now, because the journal took them though it raised an
        error; a pause, because its count is outdated; a result, if the call has one by now;
        everything, if the turn has ended; and if the turn was stopped, a start, because its effect has not begun, and
        the turn's own result, unless `closing`.
        """
        steps, recorded = list(steps), self._recorded()
        known, first = {step.id for step in recorded}, self._staged[0].id
        staged = self._unstage([*recorded, *(s for s in steps if s.id not in known)], last_id)
        if self.view.cancelled() or self.view.result(""):
            self.stopped = self.stopped or Cancelled()
        for step in staged:
            if step not in steps and not self._gives_way(step, closing):
                self.stage(_referring(step, first, last_id))

    def _gives_way(self, step: Step, closing: bool) -> bool:
        if self.view.result("") or step.type == "pause":
            return True
        if step.type == "action_start" or (step.type == "action_result" and not step.path and not closing):
            return self.stopped is not None
        return step.type == "action_result" and self.view.result(step.path) is not None


def _referring(step: Step, first: int, last_id: int) -> Step:
    """Return a staged step with its reference to the history before it as high as the steps staged from `first` on."""
    history = step.payload.get("history") if step.type == "action_start" else None
    if not history or history["seq"] < first:
        return step
    moved = history | {"seq": history["seq"] + last_id + 1 - first}
    return replace(step, payload=step.payload | {"history": moved})
