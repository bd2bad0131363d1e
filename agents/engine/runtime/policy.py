"""Policies: everything that acts is one, be it the model, a tool, a person who approves, an agent or a workflow.

A policy is called with an Action, what to do, and a Context, by which it calls others and reads its own ledger.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel

from agents.engine.errors import Halt, Suspended
from agents.engine.interfaces.services import Services
from agents.engine.ledger import JSON, Ledger, Step, copy_json
from agents.engine.limits import Limits
from agents.engine.outputs.timeline import Outputs
from agents.engine.paths import join
from agents.engine.runtime.clock import Clock
from agents.engine.runtime.recorder import Recorder
from agents.engine.schema import problem, schema_of
from agents.engine.tools.gatekeeper import Gatekeeper
from agents.engine.view import View

T = TypeVar("T")


@dataclass(frozen=True)
class Action:
    """A policy to call, what to tell it, and the names of the policies it may offer and call itself.

    A Ledger may stand in the payload as a value: it is recorded as a reference, never copied.
    """

    policy: str
    payload: dict[str, Any] = field(default_factory=dict)
    actions: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.payload is None:
            raise TypeError("the payload of an action is a dict, never None")
        object.__setattr__(self, "actions", frozenset(self.actions))

    def recorded(self) -> dict[str, JSON]:
        """The payload as the ledger keeps it."""
        return {k: v.reference() if isinstance(v, Ledger) else v for k, v in self.payload.items()}


Policy = Callable[[Action, "Context"], Awaitable[list[Step]]]
"""What acts: returns the steps it said. An `action_call` among them is asked for, not done."""
Decorator = Callable[[Policy], Policy]
"""What changes how a policy is run: see agents.engine.runtime.decorators."""


def records_itself(policy: Policy) -> Policy:
    """Mark a policy that reaches outside only after a record of its own: its call is recorded together with that."""
    policy.records_itself = True  # type: ignore[attr-defined]
    return policy


@dataclass(frozen=True)
class Registered:
    """A policy under its name."""

    name: str
    policy: Policy
    description: str = ""
    input: type[BaseModel] | None = None
    owner: str = ""

    @property
    def schema(self) -> dict[str, JSON]:
        """The JSON Schema of its payload; any object where it declares none."""
        return schema_of(self.input) if self.input else {"type": "object"}

    def problem(self, payload: dict[str, JSON]) -> str | None:
        """Why this payload is refused, in one line; None if it is fine."""
        return problem(self.input, payload) if self.input else None


class HasClock(Protocol):
    """An agent's turn, as far as policies below it need to know it."""

    @property
    def clock(self) -> Clock:
        """The running time that the agent may use."""
        ...


class Runtime(Protocol):
    """What runs policies, as they and tools may use it; `agents.engine.runtime.run.Run` is the one there is.

    `fence`: the number of the claim under which `worker` (the actor of its starts) runs the turn. `rounds_granted`: how
    often the turn's own agent may ask the model.
    """

    fence: int
    worker: str
    limits: Limits
    services: Services
    gatekeeper: Gatekeeper
    recorder: Recorder
    rounds_granted: int

    @property
    def view(self) -> View:
        """The turn's steps by path, staged ones included. Ask anew after each await: others may have appended."""
        ...

    @property
    def outputs(self) -> Outputs:
        """The outputs so far."""
        ...

    def registered(self, name: str) -> Registered | None:
        """The policy of this name, if there is one."""
        ...

    def stage(self, *steps: Step, snapshots: dict[str, str] | None = None) -> None:
        """Take steps into the turn; they are recorded with the next flush."""
        ...

    async def flush(self) -> None:
        """Record what is staged, in one transaction. Raises what stopped the turn."""
        ...

    def raise_if_stopped(self) -> None:
        """Raises what stopped the turn, where something did: nothing new starts then."""
        ...

    async def perform(
        self,
        path: str,
        action: Action,
        caller: Context | None,
        decorators: Sequence[Decorator] = (),
        *,
        policy: Policy | None = None,
        hold: bool = False,
    ) -> list[Step]:
        """The answer of the call at `path`: from the ledger, else by doing it. See Context.call."""
        ...

    async def refuse(self, call: Step, code: str, message: str) -> list[Step]:
        """End a call with an error, without doing it."""
        ...

    async def effect(self, work: Coroutine[Any, Any, T], limit: float | None = None) -> T:
        """Do what reaches outside. Raises what stopped the turn, or TimeoutError after `limit` seconds."""
        ...


class Context:
    """What a policy sees of its run: it calls others and reads its own ledger. `turn` is the agent's it belongs to."""

    def __init__(self, run: Runtime, path: str, action: Action, turn: HasClock | None = None) -> None:
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
        return self.turn.clock if self.turn else Clock(self.run.recorder, "", self.run.limits.seconds)

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
        return Ledger(tuple(self.run.view.own_steps(self.path)))

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
