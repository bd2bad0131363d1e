"""Running policies from a ledger: recorded results are returned, work continues at the first call without one."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Coroutine, Iterable, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any, TypeVar

from agents.engine import actors
from agents.engine.closing import NOT_EXECUTED, close_calls, close_turn, notice
from agents.engine.errors import Abandoned, Cancelled, Draining, Halt, ReplayMismatch, Suspended, ToolError, Unrecorded
from agents.engine.interfaces.journal import Journal, MemoryJournal
from agents.engine.interfaces.services import PlainServices, Services
from agents.engine.ledger import JSON, Step, action_error
from agents.engine.limits import Limits
from agents.engine.paths import HUMAN, ancestors
from agents.engine.runtime.action import Action
from agents.engine.runtime.answers import placed
from agents.engine.runtime.built_in import BUILT_IN
from agents.engine.runtime.decorators import in_turns
from agents.engine.runtime.marks import is_marked
from agents.engine.runtime.policy import (
    Context,
    Decorator,
    Policy,
    Registered,
    Runtime,
)
from agents.engine.runtime.recorder import Recorder
from agents.engine.runtime.registry import PolicyRegistry
from agents.engine.secrets import hide_in_payload
from agents.engine.tools.gatekeeper import AskEverybody, Gatekeeper

logger = logging.getLogger(__name__)

T = TypeVar("T")

PATH_MOST = 200
"""The most characters in a path. Every journal can store that many."""

GRACE_SECONDS = 8.0
"""How long to wait for a cancelled effect to end.

More than the site's own tools need (a command takes longest, up to 7 s), and less than the 10 s within which the kill
switch has to end everything that runs.
"""


class Run(Runtime):
    """One run of a turn: it replays the ledger, runs the calls without a result, and records as it goes.

    `steps`: the turn's ledger so far. `last_id`: the last id used in the conversation. `states`: each plugin's state
    before the turn. `fence`: the number of the claim under which `worker` (the actor of its start steps) runs it.
    `gatekeeper`: who may lift a gate.
    """

    def __init__(
        self,
        registry: PolicyRegistry,
        journal: Journal | None = None,
        services: Services | None = None,
        *,
        steps: Iterable[Step] = (),
        last_id: int | None = None,
        states: dict[str, dict[str, JSON]] | None = None,
        fence: int = 0,
        limits: Limits | None = None,
        gatekeeper: Gatekeeper | None = None,
        worker: str = "runtime",
    ) -> None:
        self.registry, self.fence, self.worker = registry, fence, worker
        self.limits, self.gatekeeper = limits or Limits(), gatekeeper or AskEverybody()
        self.services = services or PlainServices()
        self.recorder = Recorder(journal or MemoryJournal(), self.services, steps, last_id, states)
        self.granted = self.limits
        self.draining = False
        self._calls_running: dict[str, asyncio.Task[list[Step]]] = {}  # by path
        self._stop_signals: set[asyncio.Future[None]] = set()  # one for each running effect, set when it must end

    def registered(self, name: str) -> Registered | None:
        """Return the policy with this name, or None."""
        return self.registry.get(name)

    async def flush(self) -> None:
        """Record the staged steps. Whatever stops the turn stops its effects too, but for a journal that is away."""
        try:
            await self.recorder.flush()
        except Unrecorded:
            raise
        except Halt as halt:
            self.stop(halt)
            raise

    # The root

    async def run_turn(
        self, policy: str, payload: dict[str, Any], *, start: bool = False, actions: Iterable[str] = ()
    ) -> None:
        """Run the turn until it ends, or has to wait for a person or a time. `start`: record that the worker starts it.

        `actions`: the names of the policies that its root may offer. If the task that runs this is cancelled, so are
        the calls that it runs; they stand in the ledger as interrupted.
        Raises Draining, Fenced or Unrecorded if this worker must give the turn up, and any error of a policy that is
        not data.
        """
        action = Action(policy, payload, frozenset(actions))
        if not self.view.call(""):
            root = {"policy": policy, "payload": action.recorded()}
            self.stage(Step(actors.user(self.services.user), "action_call", root))
        self.granted = self._grant(policy)
        if start:
            self.stage(self._start())
        try:
            try:
                await self.perform("", action, None)
            except Suspended:
                await self._pause()
            except Draining:
                await self._wait_for_calls()
                await self.flush()  # a held answer would be recorded with what comes next, and nothing does
                raise
        except Cancelled:
            await self._wait_for_calls()
            if not self.view.result(""):
                self.stage(*close_turn(self.view, "cancelled", "cancelled", "Stopped before it was done."))
            await self.recorder.flush(closing=True)
        except asyncio.CancelledError:
            await asyncio.gather(*map(_cancel, list(self._calls_running.values())))
            self._calls_running.clear()
            raise
        finally:
            await self._wait_for_calls()

    def _grant(self, policy: str) -> Limits:
        """Return the limits with the budget of the turn: what its first start granted it, or else what it has now."""
        found, starts = self.registered(policy), self.view.at("", "action_start")
        budget: dict[str, Any] = getattr(found.policy, "budget", _budget_of(found)) if found else {}
        if starts and (granted := starts[0].payload.get("limits")):
            seconds = math.inf if granted["seconds"] is None else granted["seconds"]
            budget = budget | {"rounds": granted["rounds"], "seconds": seconds}
        return replace(self.limits, **budget)

    def _start(self) -> Step:
        """Return the start of the turn by this worker; its first has the budget that the turn is granted (S97)."""
        attempt, granted = len(self.view.at("", "action_start")) + 1, self.granted
        seconds = None if math.isinf(granted.seconds) else granted.seconds
        limits = {"limits": {"rounds": granted.rounds, "seconds": seconds}} if attempt == 1 else {}
        return Step(self.worker, "action_start", {"attempt": attempt, "fence": self.fence, **limits})

    async def fail(self, stop_reason: str, message: str) -> None:
        """End the turn as failed, closing everything open. If its end is already staged, that is recorded instead."""
        if not self.view.result(""):
            self.stage(*close_turn(self.view, "failed", stop_reason, message))
        await self.recorder.flush(closing=True)

    async def _pause(self) -> None:
        if self._calls_running:
            await self.flush()  # gates show at once; the pause waits for calls that are still running
            await self._wait_for_calls()
        while not self.view.paused() and (self.view.open_gates() or self.view.open_sleeps()):
            waits: dict[str, JSON] = {"pending_action_count": len(self.view.open_gates())}
            if asleep := self.view.open_sleeps():
                waits["until"] = asleep[0].payload["payload"]["until"]
            self.stage(Step("runtime", "pause", {**waits, **self.budget()}))
            await self.flush()  # a decision meanwhile drops the pause, and it is counted again
        await self.flush()

    def budget(self) -> dict[str, JSON]:
        """Return the rounds used and left, across all pauses (S84, S86)."""
        used = self.view.rounds
        return {"steps_used": used, "steps_remaining": max(self.granted.rounds - used, 0)}

    def rounds_left(self, path: str) -> int:
        """Return how many rounds the turn has left, with the one at `path`, whether or not it was asked already."""
        return self.granted.rounds - self.view.rounds_but(path)

    # Calls

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
        """Return the answer of the call at `path`: from the ledger, or by running it. See Context.call."""
        if call := self.view.call(path):
            self._check_recorded(call, action)
        if self.view.result(path):
            return self.view.answer(path)
        if caller and path in ancestors(caller.path):
            raise ValueError(f"the call at {path!r} would wait for itself")
        if running := self._calls_running.get(path):  # a call that was asked for, invoked twice side by side
            return await asyncio.shield(running)
        if self.view.result(""):
            raise RuntimeError(f"the turn has ended, so {action.policy!r} is not called: await what a policy calls")
        self.raise_if_stopped()
        if len(path) > PATH_MOST:
            deep = f"The path of this call has {len(path)} characters: calls are nested too deeply, or keys too long."
            raise ToolError(deep, code="too_deep")
        registered = None if policy else self.registered(action.policy)
        policy = policy or (registered.policy if registered else BUILT_IN.get(action.policy))
        if not self.view.call(path):
            is_tool = getattr(policy, "is_tool", False) and not decorators  # else each turn is a call of the tool
            self.stage(self._call_step(path, action, caller, tool=is_tool, turn=turn))
        if policy is None:
            unknown = action_error("runtime", "unknown_policy", f"No policy {action.policy!r}.")
            return await self._record_result(path, action, [unknown])
        if registered and (why := registered.problem(action.recorded())):
            return await self._record_result(path, action, [action_error("runtime", "invalid_input", why)])
        if decorators:
            policy = reduce(lambda inner, decorate: decorate(inner), reversed(decorators), in_turns(policy))
        return await self._run_shielded(path, self._act(path, policy, action, caller, hold))

    def raise_if_stopped(self) -> None:
        """Raise the Halt that stopped the turn, if it was stopped, so that nothing new starts."""
        if self.recorder.stopped:
            raise self.recorder.stopped
        if self.draining:
            raise Draining

    def _call_step(self, path: str, action: Action, caller: Context | None, *, tool: bool, turn: bool) -> Step:
        by = actors.policy(caller.action.policy) if caller else "runtime"
        if action.policy in ("model", HUMAN):
            by = "runtime"
        payload: dict[str, JSON] = {"policy": action.policy, "payload": action.recorded()}
        if tool:
            payload["tool"] = True
        if turn:
            payload["turn"] = True
        return Step(by, "action_call", payload, path=path)

    def _check_recorded(self, call: Step, action: Action) -> None:
        """Compare a recorded call with this one: another policy is a mismatch, another payload is noted once."""
        if call.payload["policy"] != action.policy:
            raise ReplayMismatch(
                f"at {call.path!r} the ledger has {call.payload['policy']!r}, the program calls {action.policy!r}"
            )
        path = call.path
        now = hide_in_payload(call.actor, action.policy, action.recorded())
        if self.view.result(path) or call.payload["payload"] == now:
            return
        message = "The payload differs from the recorded one; the call continues with the new one."
        if not any(note.payload["code"] == "payload_changed" for note in self.view.at(path, "note")):
            self.stage(Step("runtime", "note", {"code": "payload_changed", "message": message}, path=path))

    async def _act(self, path: str, policy: Policy, action: Action, caller: Context | None, hold: bool) -> list[Step]:
        action = action.copy()  # it may change the payload
        context: Context = getattr(policy, "context", Context)(self, path, action, caller)
        if not is_marked(policy, "records_itself"):
            await self.flush()  # a call is recorded before its policy does anything
        try:
            answering = policy(action, context)
            steps = await _awaitable(answering, action.policy)
        except ToolError as error:
            steps = [action_error("runtime", error.code, error.message)]
        except SystemExit as error:  # it would end the event loop, and the ledger of this run with it
            raise RuntimeError(f"the policy {action.policy!r} called sys.exit({error.code!r})") from error
        except BaseException as error:
            if isinstance(context.halt or error, Suspended):
                context.told.keep()
            if context.halt:  # a TaskGroup or a `finally` may have replaced it with another error
                raise context.halt from None
            raise
        context.told.keep()
        if not path:  # what is staged at its end must be recorded together, and a call beside it may have to stop
            await self._wait_for_calls()
        if context.halt:
            raise context.halt
        return await self._record_result(path, action, steps, hold)

    async def _record_result(self, path: str, action: Action, steps: Iterable[Step], hold: bool = False) -> list[Step]:
        *said, result = placed(steps, path, action, self.view)
        self.stage(*said)
        if not path:  # most of these were asked for, and nobody ran them
            self.stage(*close_calls(self.view, *NOT_EXECUTED))
        if not path and result.failed:  # what ends a turn as failed tells people why
            self.stage(notice(result.payload["message"]))
        self.stage(result)
        if not hold or self._others_run(path):
            await self.flush()
        return self.view.answer(path)

    def _others_run(self, path: str) -> bool:
        """Whether other calls are running than this one and those that wait for it."""
        return not self._calls_running.keys() <= set(ancestors(path))

    # Tasks

    async def _run_shielded(self, path: str, work: Coroutine[Any, Any, list[Step]]) -> list[Step]:
        """Await the call at `path` in a task of its own, so that it finishes even if its caller is cancelled."""
        task = self._calls_running[path] = asyncio.ensure_future(work)
        task.add_done_callback(partial(self._has_ended, path))
        return await asyncio.shield(task)

    def _has_ended(self, path: str, call: asyncio.Task[list[Step]]) -> None:
        if self._calls_running.get(path) is call:
            del self._calls_running[path]
        _forget_error(call)

    async def effect(self, work: Coroutine[Any, Any, T], limit: float | None = None) -> T:
        """Run an effect. Raises the Halt that stops the turn meanwhile, or TimeoutError after `limit` seconds.

        Work that does not end within GRACE_SECONDS of being cancelled is abandoned: then the error is Abandoned, and
        its result is discarded.
        """
        task, stop_signal = asyncio.ensure_future(work), asyncio.get_running_loop().create_future()
        self._stop_signals.add(stop_signal)
        try:
            await asyncio.wait({task, stop_signal}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._stop_signals.discard(stop_signal)
            stop_signal.cancel()
            await _cancel(task)
        if task.done() and not task.cancelled():
            return task.result()
        if self.recorder.stopped:
            raise self.recorder.stopped
        raise TimeoutError if task.done() else Abandoned

    def stop(self, halt: Halt) -> None:
        """Start nothing new, and cancel the running effects."""
        self.recorder.stopped = self.recorder.stopped or halt
        for stop_signal in self._stop_signals:
            if not stop_signal.done():
                stop_signal.set_result(None)

    async def _wait_for_calls(self) -> None:
        """Wait until no call of this turn is running any more, so that their results can be recorded."""
        while rest := set(self._calls_running.values()) - {asyncio.current_task()}:
            await asyncio.wait(rest)


def _budget_of(program: Registered) -> dict[str, Any]:
    """Return what a turn of this program is granted; its rounds are the site's unless it has its own."""
    return {"seconds": program.seconds} | ({} if program.rounds is None else {"rounds": program.rounds})


async def _cancel(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait GRACE_SECONDS for it to end; if it does not, keep it until it ends by itself."""
    if task.done():
        return
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE_SECONDS)
    if not task.done():
        logger.warning("abandoned, because it did not end when it was cancelled: %s", task.get_coro())
        _abandoned.add(task)
        task.add_done_callback(_abandoned.discard)
        task.add_done_callback(_forget_error)


def _forget_error(done: asyncio.Task[Any]) -> None:
    """Look at the error of a task: whoever awaits it sees it, and asyncio need not log that nobody did."""
    _ = done.cancelled() or done.exception()


_abandoned: set[asyncio.Task[Any]] = set()
"""Abandoned tasks that are still running: the event loop itself keeps only weak references to tasks."""


def _awaitable(answering: object, policy: str) -> Awaitable[list[Step]]:
    if isinstance(answering, AsyncGenerator):
        raise TypeError(f"the policy {policy!r} yields its steps: it must return a list of them")
    if not isinstance(answering, Awaitable):
        raise TypeError(f"the policy {policy!r} must be an async function: async def")
    return answering
