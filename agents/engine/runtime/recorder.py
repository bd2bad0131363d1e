"""What stands between a running turn and its journal: steps are staged, then recorded together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from agents.engine.errors import Behind, Cancelled, Halt
from agents.engine.interfaces.journal import Journal, Record
from agents.engine.interfaces.services import Services
from agents.engine.ledger import JSON, Step
from agents.engine.outputs.kinds import Output
from agents.engine.outputs.timeline import Outputs
from agents.engine.secrets import hide_in
from agents.engine.view import View


class Recorder:
    """A turn's steps so far, as an index (`view`) and as outputs, with those that are staged and not yet recorded.

    `last_id` is the last id taken in the whole conversation; a step gets its id when it is staged.
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
        self._lock = asyncio.Lock()

    def stage(self, *steps: Step, snapshots: dict[str, str] | None = None) -> None:
        """Take steps into the turn; they are recorded with the next flush. The site's own secrets stay out of them."""
        for step in steps:
            self.last_id += 1
            said = hide_in(step.payload)
            placed = replace(step, payload=said, id=self.last_id, time=self.services.now().isoformat())
            self._staged.append(placed)
            self.view.add(placed)
            if changed := self.outputs.add(placed):
                self._changed[changed.position] = changed
        self._snapshots |= snapshots or {}

    async def flush(self, closing: bool = False) -> None:
        """Record what is staged, in one transaction. Raises what stopped the turn, unless it is `closing`."""
        async with self._lock:
            while self._staged:
                if self.stopped and not closing:
                    raise self.stopped
                try:
                    await self._record()
                except Behind as behind:
                    self.absorb(behind.steps, behind.last_id, closing=closing)
                except Halt as halt:
                    self.stopped = self.stopped or halt
                    raise
            if self.stopped and not closing:  # all that was staged may have given way
                raise self.stopped

    async def _record(self) -> None:
        count = len(self._staged)
        record = Record(tuple(self._staged), tuple(self._changed.values()), dict(self._snapshots))
        await self.journal.record(record)
        self._staged = self._staged[count:]
        kept = {output.position: output for output in record.outputs}
        self._changed = {at: output for at, output in self._changed.items() if kept.get(at) is not output}
        self._snapshots = {k: v for k, v in self._snapshots.items() if k not in record.snapshots}

    def absorb(self, steps: Iterable[Step], last_id: int, *, closing: bool = False) -> None:
        """Put what others appended before what is staged. If that stops the turn, `stopped` says so.

        What is staged gives way: a pause, which counts what waits; a result where there is one now; all of it where
        the turn has ended; and of a turn that is stopped a start, whose effect has not begun, and the end it would have
        come to, unless this is its `closing`.
        """
        staged, self._staged, self._changed = self._staged, [], {}
        recorded = self.view.steps[: len(self.view.steps) - len(staged)]
        known = {step.id for step in recorded}
        self.view = View([*recorded, *(s for s in steps if s.id not in known)], self.view.before)
        self.outputs = Outputs(self.view.steps)
        self.last_id = last_id
        if self.view.cancelled() or self.view.result(""):
            self.stopped = self.stopped or Cancelled()
        self.stage(*(step for step in staged if not self._gives_way(step, closing)))

    def _gives_way(self, step: Step, closing: bool) -> bool:
        if self.view.result("") or step.type == "pause":
            return True
        if step.type == "action_start" or (step.type == "action_result" and not step.path and not closing):
            return self.stopped is not None
        return step.type == "action_result" and self.view.result(step.path) is not None
