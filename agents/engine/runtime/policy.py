"""Policies: everything that acts is a policy. The model, a tool, a person who approves, an agent, a program of yours.

A policy is called with an Action, which says what to do, and a Context, to call other policies and read its ledger.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel

from agents.engine.errors import Halt, Suspended, ToolError
from agents.engine.interfaces.services import Services
from agents.engine.ledger import JSON, Ledger, Step, action_error, copy_json
from agents.engine.limits import Limits
from agents.engine.paths import check_key, join
from agents.engine.runtime.action import Action
from agents.engine.runtime.asking import Asking
from agents.engine.runtime.clock import Clock
from agents.engine.runtime.marks import records_itself
from agents.engine.runtime.progress import Progress
from agents.engine.runtime.recorder import Recorder
from agents.engine.runtime.short import Short
from agents.engine.schema import problem, problems, schema_of, schema_problems
from agents.engine.tools.gatekeeper import Gatekeeper
from agents.engine.view import View, asked_for

T = TypeVar("T")


Policy = Callable[[Action, "Context"], Awaitable[list[Step]]]
"""What acts. It returns the steps it said; an `action_call` among them is only asked for, not yet run."""
Decorator = Callable[[Policy], Policy]
"""A function that changes how a policy runs: see agents.engine.runtime.decorators."""


@dataclass(frozen=True)
class Registered:
    """A registered policy. `input` says what its payload must be, as a pydantic model or as a JSON Schema.

    `title`: what people read of it. `offered`: whether models may call it. `startable`: whether people may start it by
    name. `owner`: where it was defined. `seconds` and `rounds`: the running time of a turn that it is the root of, and
    the rounds of all agents in it; None: the site's.
    """

    name: str
    policy: Policy
    description: str = ""
    input: type[BaseModel] | dict[str, JSON] | None = None
    owner: str = ""
    seconds: float = math.inf
    rounds: int | None = None
    title: str = ""
    offered: bool = False
    startable: bool = True

    @property
    def goes_on(self) -> bool:
        """Whether another turn can continue one of it: an agent finds what was done in its history, a program not."""
        return hasattr(self.policy, "budget")

    @property
    def prompt(self) -> str:
        """The system text that an agent has in its code; "" if it has none, and for a program."""
        return str(getattr(self.policy, "prompt", ""))

    @property
    def schema(self) -> dict[str, JSON]:
        """The JSON Schema of its payload; any object if it declares no input."""
        if isinstance(self.input, dict):
            return self.input
        return schema_of(self.input) if self.input else {"type": "object"}

    def problem(self, payload: dict[str, JSON]) -> str | None:
        """Return why this payload is invalid, in one line; None if it is valid."""
        return None if self.input is None else problem(self.input, payload)

    def problems(self, payload: dict[str, JSON]) -> list[tuple[str, str]]:
        """Return each problem with this payload as (place, reason); a place is like "tags.0", or "" for all of it."""
        if isinstance(self.input, dict):
            return schema_problems(self.input, payload)
        return problems(self.input, payload) if self.input else []


class HasClock(Protocol):
    """The part of an agent's turn that the policies it calls need."""

    @property
    def clock(self) -> Clock:
        """The clock of the agent's running time."""
        ...


class Runtime(Protocol):
    """What policies and tools may use of the Run (`agents.engine.runtime.run`) that runs them.

    `fence`: the number of the claim under which `worker` (the actor of its start steps) runs the turn.
    `limits`: the site's; `granted`: those with the turn's own budget, in which `seconds` may be infinite.
    """

    fence: int
    worker: str
    limits: Limits
    granted: Limits
    services: Services
    gatekeeper: Gatekeeper
    recorder: Recorder

    @property
    def view(self) -> View:
        """The turn's steps by path, staged ones included. Read it again after each await: others may have appended."""
        return self.recorder.view

    def registered(self, name: str) -> Registered | None:
        """Return the policy with this name, or None."""
        ...

    def stage(
        self,
        *steps: Step,
        snapshots: Mapping[str, str] | None = None,
        uses: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:
        """Add steps to the turn; the next flush records them. See Recorder.stage."""
        self.recorder.stage(*steps, snapshots=snapshots, uses=uses)

    async def flush(self) -> None:
        """Record the staged steps in one transaction. Raises the Halt that stopped the turn, if it was stopped."""
        ...

    def raise_if_stopped(self) -> None:
        """Raise the Halt that stopped the turn, if it was stopped, so that nothing new starts."""
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
        turn: bool = False,
    ) -> list[Step]:
        """Return the answer of the call at `path`: from the ledger, or by running it. See Context.call.

        `policy` runs instead of the registered one of that name, and checks its input itself. `turn`: it is a turn of a
        decorated call.
        """
        ...

    def rounds_left(self, path: str) -> int:
        """Return how many rounds the turn has left, with the one at `path`, whether or not it was asked already."""
        ...

    async def effect(self, work: Coroutine[Any, Any, T], limit: float | None = None) -> T:
        """Run an effect. Raises the Halt that stops the turn meanwhile, or TimeoutError after `limit` seconds."""
        ...


class Context(Asking, Short):
    """A policy's access to its run: it calls other policies, asks people, and reads its own ledger.

    What policies do most often is in `Short` and `Asking`; `call` is the long way, for everything else.
    `caller` is the context of the policy that called it, `turn` its agent's turn.
    """

    def __init__(self, run: Runtime, path: str, action: Action, caller: Context | None = None) -> None:
        self.run, self.path, self.action = run, path, action
        self.turn: HasClock | None = caller.turn if caller else None
        self.halt: Halt | None = None
        self.told = Progress(run.recorder, action.policy, path)
        self._task = asyncio.current_task()
        self._ordinal = 0
        self._keys: set[str] = set()
        # The calls whose answers the policy was given, in its own task and in each branch of a `gather`.
        self._given: dict[asyncio.Task[Any] | None, list[str]] = {self._task: []}
        self._astray = False  # whether a call ran in any other task
        self._branches, self._suspended = set[Any](), set[Any]()  # tasks of `gather`, and those that met a Halt
        self._before = caller._in_turns() if caller and run.view.is_turn(path, caller.path) else []

    @property
    def services(self) -> Services:
        """The services through which policies reach the outside."""
        return self.run.services

    @property
    def recorder(self) -> Recorder:
        """The turn's steps so far, and its services."""
        return self.run.recorder

    @property
    def limits(self) -> Limits:
        """The site's limits."""
        return self.run.limits

    @property
    def clock(self) -> Clock:
        """The clock of its agent; outside of an agent, the clock of the whole turn."""
        return self.turn.clock if self.turn else Clock(self.run.recorder, "", self.run.granted.seconds)

    def progress(self, done: float, total: float | None = None, text: str = "") -> None:
        """Say how far this policy is: `done` of `total`, if that is known, and a few words. People see it at once.

        It need not be awaited. On a replay, what was recorded is not said again. No model is told. Raises TypeError or
        ValueError for what is no number from 0 on, or no text.
        """
        self.told.say(done, total, text)

    def call(
        self, action: Action, decorators: Sequence[Decorator] = (), *, key: str | None = None, hold: bool = False
    ) -> Coroutine[Any, Any, list[Step]]:
        """Call a policy and return its steps; the last one is the `action_result`.

        The call is named by `key`, or else by its ordinal, counted now rather than when the call is awaited. A call
        with a result in the ledger does not run again. Errors of the callee that are data (ToolError, invalid input)
        are returned as data. `hold`: record the result together with what this policy does next, unless other calls are
        still running, with which people would have to wait for it; the policy must not pass the steps on. Raises
        RuntimeError for a call without a key from another task, ValueError for a key that cannot name a call or names
        another, and TypeError for what is no action, no list of decorators, or no text as key.
        """
        given: object = action
        if not isinstance(given, Action):
            raise TypeError(
                f"ctx.call takes an Action, not a {type(given).__name__}: ctx.call(Action('name', {{...}}))"
            )
        around: object = decorators
        if not isinstance(around, Sequence) or not all(map(callable, around)):
            raise TypeError("the decorators of a call are a list, such as [loop_wrapper(5), invoke_action()]")
        path = self.take_path(key)
        return self._guarded(path, partial(self.run.perform, path, action, self, decorators, hold=hold))

    def call_at(
        self, path: str, action: Action, work: Callable[[], Awaitable[list[Step]]] | None = None
    ) -> Coroutine[Any, Any, list[Step]]:
        """Call a policy at this path, or do this work there, which is recorded together with its call."""
        policy = _doing(work) if work else None
        return self._guarded(path, partial(self.run.perform, path, action, self, policy=policy))

    def take_turn(self, policy: Policy, action: Action) -> Coroutine[Any, Any, list[Step]]:
        """Run this policy, which a decorator wraps, as a call of its own at the next ordinal: a turn."""
        path = self.take_path(None)
        return self._guarded(path, partial(self.run.perform, path, action, self, policy=policy, turn=True))

    def take_path(self, key: str | None) -> str:
        """Return the path of the next call, by its key or its ordinal. Raises as `call` does."""
        if key is None:
            if asyncio.current_task() is not self._task:
                raise RuntimeError("concurrent calls need keys, or ctx.gather")
            self._ordinal += 1
            key = str(self._ordinal)
        check_key(key)
        if key in self._keys:
            raise ValueError(f"two calls of {self.action.policy!r} have the key {key!r}: each needs one of its own")
        self._keys.add(key)
        return join(self.path, key)

    def invoke(
        self,
        call: Step,
        policy: Policy | None = None,
        allowed: Iterable[str] | None = None,
        *,
        hold: bool = False,
    ) -> Coroutine[Any, Any, list[Step]]:
        """Run a call that an answer asked for, at its own path, with `policy` or the registered policy of that name.

        A name outside `allowed` gives an error result (S117). `hold`: see `call`. Raises ValueError for a call that no
        answer of this run asked for: it has no place in the ledger.
        """
        asked = self.run.view.call(call.path)  # it may have got another number since it was given to the policy
        if not call.path or not asked or not asked_for(asked) or asked.payload != call.payload:
            raise ValueError("ctx.invoke runs what an answer asked for: make other calls with ctx.call(Action(...))")
        action = Action(call.payload["policy"], copy_json(call.payload["payload"]))
        if allowed is not None and action.policy not in allowed:
            why = ToolError(f"{action.policy!r} is not offered here.", "not_offered")
            return self._guarded(call.path, partial(self._refuse_and_record, call, why))
        return self._guarded(call.path, partial(self.run.perform, call.path, action, self, policy=policy, hold=hold))

    async def refuse(self, call: Step, why: ToolError) -> list[Step]:
        """End a call that an answer asked for with an error, without running it."""
        self._raise_if_halted()
        if not self.run.view.result(call.path):
            self.run.stage(action_error("runtime", why.code, why.message, path=call.path))
        self._was_given(call.path)
        return self.run.view.answer(call.path)

    async def _refuse_and_record(self, call: Step, why: ToolError) -> list[Step]:
        await self.refuse(call, why)
        await self.run.flush()  # steps that are not recorded may still be renumbered, and could not be passed on then
        return self.run.view.answer(call.path)

    async def gather(self, *calls: Awaitable[T]) -> list[T]:
        """Await calls concurrently; results are in call order. If one waits or sleeps, the others go on first."""
        before = self._given.get(asyncio.current_task())
        branches = [None if before is None else list(before) for _ in calls]
        ended = await asyncio.gather(*map(self._branch, calls, branches), return_exceptions=True)
        errors = [error for error in ended if isinstance(error, BaseException)]
        for error in sorted(errors, key=lambda e: isinstance(e, Suspended)):
            self._suspended.add(asyncio.current_task())  # if it is a branch of another one
            raise error
        if before is not None:
            before[:] = dict.fromkeys(path for branch in (before, *branches) for path in branch or ())
        return [result for result in ended if not isinstance(result, BaseException)]

    async def _branch(self, call: Awaitable[T], given: list[str] | None) -> T:
        task = asyncio.current_task()
        self._branches.add(task)
        if given is not None:
            self._given[task] = given
        try:
            return await call
        finally:
            self._given.pop(task, None)

    def get_ledger(self) -> Ledger:
        """Return this policy's own ledger; it may be awaited too.

        It holds the steps at the policy's own path, and of each call whose answer it has been given by now: the call,
        the calls that were asked for, and their results; in the order of the calls, also of those that ran side by
        side. In a branch of `gather`, that is what the policy was given before and what this branch was given since. In
        a turn of a decorated policy, it begins with what the earlier turns said, and the calls that they asked for,
        with results. So it is the same when the policy is replayed. Raises RuntimeError once calls ran in tasks
        of other kinds: which of their answers are there by now would differ on a replay.
        """
        given = self._given.get(asyncio.current_task())
        if given is None or self._astray:
            raise RuntimeError(
                "a ledger cannot be read where tasks make calls: run calls side by side with ctx.gather(...)"
            )
        return _ledger_of([*self._before, *self.run.view.own_steps(self.path, given)])

    def _in_turns(self) -> list[Step]:
        """Return what stands at its own path, what its turns have said, and the calls they asked for, with results."""
        given = [path for paths in self._given.values() for path in paths]
        answers = [step for path in given for step in self.run.view.answer(path) if not self.is_turn(step)]
        return [*self._before, *self.run.view.own_steps(self.path, ()), *answers]

    def is_turn(self, step: Step) -> bool:
        """Whether this is the result of a turn of this decorated call, and so not what anybody said or asked for."""
        return step.type == "action_result" and self.run.view.is_turn(step.path, self.path)

    async def _guarded(self, path: str, work: Callable[[], Coroutine[Any, Any, list[Step]]]) -> list[Step]:
        """Return the answer of the call at `path`, unless the context has halted. The policy may change its copy."""
        self._raise_if_halted()
        if asyncio.current_task() not in self._given:
            self._astray = True
        try:
            answer = await work()
        except Halt as halt:
            self.halt = self.halt or halt
            self._suspended.add(asyncio.current_task())
            raise
        self._was_given(path)
        return [replace(step) for step in answer]

    def _was_given(self, path: str) -> None:
        given = self._given.get(asyncio.current_task(), [])
        if path not in given:
            given.append(path)

    def _raise_if_halted(self) -> None:
        """Raise again the Halt that the context has met, whatever the policy has caught.

        A branch of `gather` goes on while another one waits for a person, or sleeps.
        """
        task = asyncio.current_task()
        goes_on = isinstance(self.halt, Suspended) and task in self._branches and task not in self._suspended
        if self.halt is not None and not goes_on:
            raise self.halt


def _doing(work: Callable[[], Awaitable[list[Step]]]) -> Policy:
    @records_itself
    async def policy(action: Action, ctx: Context) -> list[Step]:
        return await work()

    return policy


def _ledger_of(steps: Iterable[Step]) -> Ledger:
    """Return a ledger of copies of these steps, each once: a policy may change what it is given."""
    return Ledger(tuple(replace(step) for step in {step.id: step for step in steps}.values()))
