"""A trial: a turn under test. It runs until it ends or a person must decide, and goes on when somebody did."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any, Self

from agents.engine import deciding
from agents.engine.agent.projection import CallIds, turn_messages
from agents.engine.closing import turn_end
from agents.engine.errors import ToolError
from agents.engine.interfaces.journal import MemoryJournal, Record
from agents.engine.interfaces.messages import Message
from agents.engine.interfaces.services import PastTurn
from agents.engine.ledger import JSON, Ledger
from agents.engine.limits import Limits
from agents.engine.outputs.kinds import Approval, Output, TextOutput, ToolOutput
from agents.engine.outputs.timeline import Outputs
from agents.engine.root import WORKFLOW
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.runtime.run import Run
from agents.engine.secrets import RunSecrets, hide_in
from agents.engine.view import View, until
from agents.testing.model import Question, ScriptedModel
from agents.testing.services import SavedFile, TrialServices


class Trial:
    """A turn under test, and the people in it.

    `ledger` has all that happened, `services` what was found outside. A decision names the call by its path, such as
    "1/0" for the first call of the first round; if only one waits, it needs no name. Each decision lets the turn go on,
    and returns the trial.
    """

    def __init__(
        self,
        registry: PolicyRegistry,
        policy: str,
        payload: dict[str, Any],
        *,
        model: ScriptedModel,
        services: TrialServices,
        limits: Limits,
        by: str,
        value_at: str | None,
        dies_at: int | None,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self._registry, self._policy, self._payload, self._limits = registry, policy, payload, limits
        self._model, self._by, self._value_at = model, by, value_at
        self.services, self._secrets = services, dict(secrets or {})
        self._journal = MortalJournal(dies_at)
        self._go_on()

    def __repr__(self) -> str:
        waits = f", waits for a person at {', '.join(self.waiting)}" if self.waiting else ""
        return f"<Trial of {self._policy!r}: {self.state}{waits}>"

    # What happened

    @property
    def ledger(self) -> Ledger:
        """The steps so far."""
        return self._journal.ledger

    @property
    def outputs(self) -> list[Output]:
        """What people see, in reading order."""
        return Outputs(self.ledger).in_order()

    @property
    def messages(self) -> list[Message]:
        """What a model reads of this turn in later ones."""
        program = self._policy.startswith(WORKFLOW)
        past = PastTurn(self.services.prompt, self._payload.get("text"), self.outputs, program=program)
        return turn_messages(past, CallIds(), self._limits)

    @property
    def asked(self) -> Sequence[Question]:
        """What the model was asked, a Question for each round."""
        return self._model.asked

    @property
    def files(self) -> Sequence[SavedFile]:
        """The files that people were given."""
        return self.services.files

    @property
    def waiting(self) -> dict[str, Approval]:
        """What people are asked now, by the path of the call that waits, or of a policy's own question."""
        entries = (output for output in self.outputs if isinstance(output, ToolOutput))
        asked = ((entry.path, entry.approval) for entry in entries if not entry.settled)
        return {path: approval for path, approval in asked if approval and approval.state == "pending"}

    @property
    def state(self) -> str:
        """`waiting` for people, `sleeping`, or how the turn ended: `completed`, `failed` or `cancelled`."""
        view = View(self.ledger)
        if end := view.result(""):
            return turn_end(end)[0]
        return "sleeping" if view.open_sleeps() and not view.open_gates() else "waiting"

    @property
    def records(self) -> int:
        """How many records the turn wrote so far: the process may die at each of them (`dies_at`)."""
        return self._journal.written

    @property
    def value(self) -> Any:
        """What the call or the policy returned; of an agent's turn, its last text.

        Raises ToolError for an error, and AssertionError while it waits for a person or sleeps.
        """
        if self.state in ("waiting", "sleeping"):
            raise AssertionError(f"it has no value yet: {self!r}")
        if self._value_at is None:
            texts = [output.text for output in self.outputs if isinstance(output, TextOutput)]
            return texts[-1] if texts else None
        result = View(self.ledger).result(self._value_at)
        if result and result.failed:
            raise ToolError(result.payload["message"], result.payload["code"])
        return result and result.value

    # The people

    def approve(self, path: str = "", *, by: str = "", input: dict[str, JSON] | None = None) -> Self:
        """Approve a call, with another input if one is given. Raises ValueError if it does not wait for that."""
        return self._decide(deciding.approve, path, by=by or self._by, input=input)

    def reject(self, path: str = "", *, by: str = "", reason: str = "") -> Self:
        """Reject a call. Raises ValueError if it does not wait for that."""
        return self._decide(deciding.reject, path, by=by or self._by, reason=reason)

    def answer(self, answer: JSON, path: str = "", *, by: str = "") -> Self:
        """Answer a question: that of a policy, or, after a crash, what became of a call (`it_ran`, `it_did_not`,
        `run_again`). Raises ValueError if none waits, or for an answer that it does not take.
        """
        return self._decide(deciding.answer, path, by=by or self._by, answer=answer)

    def expire(self, path: str = "") -> Self:
        """Let the time run out in which a person could decide. Raises ValueError if nothing waits."""
        return self._decide(deciding.expire, path)

    # The clock

    @property
    def sleeping(self) -> dict[str, datetime]:
        """Until when calls of `ctx.sleep` wait, by their paths; the first to wake first."""
        return {call.path: until(call) for call in View(self.ledger).open_sleeps()}

    def wake(self, path: str = "") -> Self:
        """Put the clock of the trial forward to the end of a sleep, the first one if no path is given.

        The turn goes on, unless people have to decide something first. Raises ValueError if nothing sleeps.
        """
        named = path or next(iter(self.sleeping), "")
        ledger = deciding.wake(self.ledger, named)
        self.services.ahead += max(self.sleeping[named] - self.services.now(), timedelta())
        self._journal.go_on_from(ledger)
        self._go_on()
        return self

    def _decide(self, decide: Callable[..., Ledger], path: str, **said: Any) -> Self:
        with RunSecrets(self._secrets).hidden():
            told = hide_in(said, keys=True)
        self._journal.go_on_from(decide(self.ledger, path or self._only_one(), **told))
        self._go_on()
        return self

    def _only_one(self) -> str:
        if len(self.waiting) != 1:
            raise ValueError(f"say which one is decided: {', '.join(self.waiting) or 'nothing'} waits for a person")
        return next(iter(self.waiting))

    # The process

    def crash(self) -> Self:
        """Let the process die now, and another one go on from the ledger. To die at work, see `dies_at`."""
        self._go_on()
        return self

    def _go_on(self) -> None:
        if View(self.ledger).paused():  # for more than was decided: a site runs nothing until then
            return
        try:
            self._run()
        except Died:
            self._run()

    def _run(self) -> None:
        self.services.secrets = self._secrets
        run = Run(self._registry, self._journal, self.services, steps=self.ledger, limits=self._limits)
        with RunSecrets(self._secrets).hidden():
            _finish(run.run_turn(self._policy, self._payload))


class Died(BaseException):
    """The process died. Not an Exception: nothing in it notices."""


class MortalJournal(MemoryJournal):
    """A journal whose process dies once, when it is about to write record number `dies_at`, from 1."""

    def __init__(self, dies_at: int | None) -> None:
        super().__init__()
        self.written, self._dies_at = 0, dies_at

    async def record(self, record: Record) -> None:
        """Append a record, unless the process dies."""
        if self.written + 1 == self._dies_at:
            self._dies_at = None
            raise Died
        self.written += 1
        await super().record(record)


def _finish(work: Coroutine[Any, Any, None]) -> None:
    """Run this in an event loop and a thread of its own: the test may be a coroutine itself."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(contextvars.copy_context().run, asyncio.run, work).result()
