"""What a policy sees of its run: it calls others, does what an answer asked for, and reads its own ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from agents.engine.errors import Halt, Suspended
from agents.engine.ledger import Ledger, Step, copy_json
from agents.engine.runtime.clock import Clock
from agents.engine.runtime.policy import Action, Policy
from agents.engine.view import join

if TYPE_CHECKING:
    from agents.engine.agent.turn import Turn
    from agents.engine.interfaces.services import Services
    from agents.engine.runtime.run import Run

Decorator = Callable[[Policy], Policy]
T = TypeVar("T")


class Context:
    """What a policy sees of its run: it calls others and reads its own ledger. `turn` is the agent's it belongs to."""

    def __init__(self, run: Run, path: str, action: Action, turn: Turn | None = None) -> None:
        self.run, self.path, self.action, self.turn = run, path, action, turn
        self.halt: Halt | None = None
        self._task = asyncio.current_task()
        self._ordinal = 0

    @property
    def services(self) -> Services:
        """The outside, as far as policies may reach it."""
        return self.run.services

    @property
    def clock(self) -> Clock:
        """The running time that its agent may use; outside of one, the whole turn's."""
        return self.turn.clock if self.turn else Clock(self.run, "", self.run.limits.seconds)

    def call(
        self, action: Action, decorators: Sequence[Decorator] = (), *, key: str | None = None, hold: bool = False
    ) -> Coroutine[Any, Any, list[Step]]:
        """Call a policy and return what it came to; its last step is the `action_result`.

        The call is named by `key`, else by its ordinal, taken now and not when it is awaited. A call that the ledger
        holds is not done again. Errors of the callee that are data (ToolError, refused input) come back as data.
        `hold`: the result is recorded together with what this policy does next. Raises RuntimeError for an unkeyed
        call from another task.
        """
        if key is None:
            if asyncio.current_task() is not self._task:
                raise RuntimeError("calls made side by side need keys, or ctx.gather")
            self._ordinal += 1
            key = str(self._ordinal)
        return self._guarded(partial(self.run.perform, join(self.path, key), action, self, decorators, hold=hold))

    def invoke(
        self, call: Step, policy: Policy | None = None, allowed: Iterable[str] | None = None
    ) -> Coroutine[Any, Any, list[Step]]:
        """Do a call that an answer asked for, at its own path, by `policy` or the registry's of that name.

        A name outside `allowed` gives an error result (S117).
        """
        action = Action(call.payload["policy"], copy_json(call.payload["payload"]))
        if allowed is not None and action.policy not in allowed:
            offered = ", ".join(sorted(allowed)) or "none"
            return self.refuse(call, "not_offered", f"{action.policy!r} is not offered here. There are: {offered}.")
        return self._guarded(partial(self.run.perform, call.path, action, self, policy=policy))

    def refuse(self, call: Step, code: str, message: str) -> Coroutine[Any, Any, list[Step]]:
        """End a call that an answer asked for with an error, without doing it."""
        return self._guarded(partial(self.run.refuse, call, code, message))

    async def gather(self, *calls: Awaitable[T]) -> list[T]:
        """Await calls side by side; results in call order. One that waits for a person lets the others end first."""
        tasks = [asyncio.ensure_future(call) for call in calls]
        try:
            if tasks:
                await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            raise
        errors = [error for task in tasks if (error := task.exception())]
        for error in sorted(errors, key=lambda e: isinstance(e, Suspended)):
            raise error
        return [task.result() for task in tasks]

    def get_ledger(self) -> Ledger:
        """This policy's own steps: what it said, its calls, and the calls its rounds asked for."""
        return Ledger(tuple(self.run.view.own(self.path)))

    async def _guarded(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """A context that has stopped starts nothing more, whatever its policy catches."""
        halted = self.halt
        if halted is not None:
            raise halted
        try:
            return await work()
        except Halt as halt:
            self.halt = self.halt or halt
            raise
