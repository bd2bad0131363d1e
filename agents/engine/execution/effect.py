"""Running one tool call: checked, gated, started, run, recorded. There is no other way to run a tool."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from agents.engine import actors, paths, threads
from agents.engine.actors import Actor
from agents.engine.closing import HAD_BEGUN
from agents.engine.decisions import DECISIONS, Ask, Decision, rule_of
from agents.engine.errors import Abandoned, Fenced, NotKept, Suspended, ToolError
from agents.engine.execution.gates import (
    GateDecision,
    ShownCall,
    approval_reason,
    approved_details,
    card_of,
    decision_at,
    describe_call,
    edited_input,
    gate_call,
    gate_of,
    is_being_cancelled,
    question,
    shown_digest,
)
from agents.engine.execution.secrets import check_edited, check_secrets, put_in, refused_reference
from agents.engine.execution.starting import (
    abandoned_note,
    approved_by,
    asked_about,
    card_error,
    check_interrupted,
    check_start,
    interrupted_error,
    not_started_error,
)
from agents.engine.interfaces.services import PlainServices
from agents.engine.ledger import JSON, Ledger, Step, action_error, action_result, digest
from agents.engine.runtime.action import Action
from agents.engine.runtime.policy import Context, Policy, Runtime
from agents.engine.schema import plain_json, schema_digest
from agents.engine.secrets import hide, hide_in
from agents.engine.tools.state import read_state, state_steps
from agents.engine.tools.tool import Risk, Tool, ToolCall
from agents.engine.view import View


@dataclass(frozen=True)
class ToolPolicy:
    """A tool as a policy. Equal to any other ToolPolicy of the same tool."""

    tool: Tool

    is_tool: ClassVar[bool] = True
    records_itself: ClassVar[bool] = True

    async def __call__(self, action: Action, ctx: Context) -> list[Step]:
        """Run one call of the tool. Raises as `run_tool` does."""
        return await run_tool(self.tool, action, ctx)


def as_policy(tool: Tool) -> Policy:
    """Return the policy that runs this tool, for a registry or `ctx.invoke`."""
    return ToolPolicy(tool)


async def run_tool(tool: Tool, action: Action, ctx: Context) -> list[Step]:
    """Run the tool for the call at `ctx.path`, and return its result.

    Raises Suspended if a person must decide first, and ToolError for a call that does not run. What runs is what was
    approved: if anything about the call has changed since, the error is `changed_since`; if the tool itself has
    changed, it is `tool_changed`.
    """
    run, asked_at = ctx.run, gate_of(ctx.run.view, ctx.path)
    payload = hide_in(_input(action, ctx))  # it runs exactly as it is recorded and shown
    decision = decision_at(run.view, asked_at)
    if decision is None and run.view.call(asked_at):
        raise Suspended  # a person was asked and has not answered
    if decision and (edited := edited_input(run.view, ctx.path)) is not None:
        check_edited(payload, edited)
        payload = edited
    if why := refused_reference(run.view, ctx.path, payload, action.secrets) or tool.problem(payload):
        raise unrunnable(run.view, ctx.path, ToolError(why, "invalid_input"))
    began = bool(run.view.at(ctx.path, "action_start"))  # then it needed no gate, or was approved before
    if decision is None and not began:
        check_secrets(tool, payload, run)
        opened = await open_gate(tool, payload, ctx.path, ctx, set())
        run.stage(*opened.steps, uses=opened.uses)
        if opened.uses:
            await run.flush()  # if it is used up, the decision is taken out, and a person is asked
        decision = decision_at(run.view, asked_at)
        if opened.steps and decision is None:
            raise Suspended
    if decision and not decision.runs:
        raise refusal(decision)
    if decision and decision.input is not None and tool.four_eyes:  # it was approved before the tool needed four eyes
        raise not_started_error(run.view, ctx.path, "not_permitted", EDITED_ALONE)
    await check_interrupted(tool, payload, ctx)
    async with _thread_slot(tool, ctx):
        await check_start(tool, ctx.path, approved_by(ctx), ctx)
        return await _run_as_approved(tool, payload, action, ctx)


EDITED_ALONE = "The rules for this tool changed before this call ran, so nothing ran: call it again."
"""Why a call does not start whose tool needs four eyes by now: whoever approved it also edited it."""


def _input(action: Action, ctx: Context) -> dict[str, JSON]:
    """Return the tool's input: its payload, but for the ledger that a decorator adds to that of a turn."""
    call = ctx.run.view.call(ctx.path)
    added = call is not None and call.payload.get("turn") and isinstance(action.payload.get("ledger"), Ledger)
    return {key: value for key, value in action.recorded().items() if not (added and key == "ledger")}


@dataclass(frozen=True)
class OpenedGate:
    """The steps that open a gate, and decide it if a standing rule does; none for a call that needs no gate.

    `uses`: what the decision uses up, by the path of the gate.
    """

    steps: tuple[Step, ...] = ()
    uses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


async def open_gate(tool: Tool, payload: dict[str, JSON], path: str, ctx: Context, changing: set[str]) -> OpenedGate:
    """Return the opened gate of a call, if it needs one.

    `changing`: the paths that earlier calls with gates would change; this call's path is added, unless a rule denies
    it. Raises ToolError for a call that cannot work or may not start, because nobody should be asked about it.
    """
    run = ctx.run
    call = new_call(tool, payload, path, run)
    reason = await approval_reason(tool, call)
    if reason is None:
        return OpenedGate()
    await check_start(tool, path, "", ctx)
    shown = describe_call(tool, payload, call)
    if shown.change and shown.change.path in changing:
        what = shown.change.path
        raise ToolError(f"A call before this one changes {what!r} too: ask for this when that is done.", "one_by_one")
    asked = gate_call(
        paths.gate(path),
        question(Ask.APPROVE, tool, payload, run, reason=reason, named=shown.digest, shown=shown.recorded),
    )
    verdict = await run.gatekeeper.decide(tool, call, asked_about(asked.payload["payload"], path, run))
    if shown.change and verdict.verdict != "deny":
        changing.add(shown.change.path)
    if verdict.verdict == "ask":
        return OpenedGate((asked,))
    decided = {
        "decision": (Decision.APPROVE if verdict.verdict == "allow" else Decision.REJECT).value,
        "digest": shown.digest,
        "reason": verdict.reason,
        "via": Actor.parse(verdict.by).kind,
        **verdict.record,
    }
    decision = Step(verdict.by, "action_result", decided, path=asked.path)
    return OpenedGate((asked, decision), {asked.path: verdict.uses} if verdict.uses else {})


def new_call(tool: Tool, payload: dict[str, JSON], path: str, run: Runtime, attempt: int = 1) -> ToolCall[Any, Any]:
    """Return the ToolCall that the tool's function is given."""
    return ToolCall(
        tool=tool.name,
        input=tool.parse(payload),
        user=run.services.user,
        services=run.services,
        path=path,
        key=digest([run.services.prompt, path]),
        attempt=attempt,
        state=read_state(tool.plugin, run.view) if tool.plugin else None,
    )


def unrunnable(view: View, path: str, why: ToolError) -> ToolError:
    """Return the error of a call that its tool cannot run, or no longer can. A person's decision comes first (S35).

    `why` is the error if nobody decided anything and the call never began.
    """
    began = len(view.at(path, "action_start"))
    decision, card = decision_at(view, gate_of(view, path)), decision_at(view, card_of(view, path))
    if began and card:
        return card_error(card, f"The tool changed meanwhile. {why.message}")
    if began:  # when the call began, the tool existed and accepted it
        return interrupted_error(f"Nobody knows whether it ran: check before you ask again. {why.message}")
    if decision and decision.runs and edited_input(view, path) is not None:
        refused = "The tool does not accept the input as a person changed it, so nothing ran."
        return ToolError(f"{refused} {why.message}", "tool_changed")
    if decision and decision.runs:
        changed = "The tool changed before this call ran, so nothing was done."
        return ToolError(f"{changed} {why.message}", "tool_changed")
    return refusal(decision) if decision else why


def refusal(decision: GateDecision) -> ToolError:
    """Return the error of a call that was decided against."""
    rule = rule_of(decision.decision)
    code, why = (rule.state, rule.told) if rule else (decision.decision, DECISIONS[Decision.REJECT].told)
    return ToolError(decision.reason or why, code)


@asynccontextmanager
async def _thread_slot(tool: Tool, ctx: Context) -> AsyncIterator[None]:
    """Hold a thread slot, if the tool needs one. Raises ToolError if none is free in time.

    It is taken before the start is recorded: a call that waits here has not begun, whatever happens to its worker.
    """
    run, limit = ctx.run, _limit(tool, ctx)
    if inspect.iscoroutinefunction(tool.function):
        yield
        return
    slots = threads.slots()
    if slots.locked():
        await run.flush()  # the request for the call must survive if the waiting worker dies
        run.raise_if_stopped()
        try:
            await run.effect(slots.acquire(), limit.seconds)
        except TimeoutError:
            why = f"Not started: no thread was free within {limit}."
            raise not_started_error(run.view, ctx.path, "timeout" if limit.of_turn else "not_started", why) from None
    else:
        await slots.acquire()
    try:
        yield
    finally:
        slots.release()


@dataclass(frozen=True)
class TimeLimit:
    """The seconds that a call may run from now, and may wait for a thread before that.

    `of_turn`: the limit of the turn or its agent, in seconds, if that ends before the call's own; else None.
    """

    seconds: float
    of_turn: float | None = None

    def __str__(self) -> str:
        if self.of_turn is None:
            return f"{self.seconds:g} seconds, its limit"
        return f"{self.of_turn:g} seconds of running, the limit of the turn"


def _limit(tool: Tool, ctx: Context) -> TimeLimit:
    own, left = tool.time_limit or ctx.run.limits.tool_seconds, ctx.clock.left()
    return TimeLimit(own) if own <= left else TimeLimit(left, ctx.clock.limit())


async def _run_as_approved(tool: Tool, payload: dict[str, JSON], action: Action, ctx: Context) -> list[Step]:
    """Run the call, if it still looks as it did when it was approved, or when it began."""
    view, gate = ctx.run.view, gate_of(ctx.run.view, ctx.path)
    starts = view.at(ctx.path, "action_start")
    binds = view.result(gate) or (starts[-1] if starts and not tool.idempotent else None)
    wanted = binds.payload.get("digest", "") if binds else None
    try:
        shown = describe_call(tool, payload, new_call(tool, payload, ctx.path, ctx.run))
    except ToolError as error:
        if wanted is None:
            raise
        raise _changed_error("changed_since", starts, error.message) from error
    if wanted not in (None, shown.digest):
        then = shown_digest(tool.name, payload, schema_digest(tool.input), **approved_details(view, gate))
        raise _changed_error("changed_since" if then == wanted else "tool_changed", starts)
    return await _start_and_run(tool, payload, shown, action, ctx)


CHANGED = {
    "changed_since": "What this would change is no longer as it was when you called: read it again, then call again.",
    "tool_changed": "The tool changed before this call ran: call it again.",
}
"""The messages for approved calls that do not start, by error code. Like all results, they tell a model nothing of
approvals (S100)."""


def _changed_error(code: str, starts: list[Step], why: str = "") -> ToolError:
    """Return the error of a call that differs from what was approved. If it began, it may have caused that."""
    message = f"{CHANGED[code]} {why}".strip()
    if starts:
        return interrupted_error(f"It began once, and nobody knows whether it ran. {message}")
    return ToolError(message, code)


async def _start_and_run(
    tool: Tool, payload: dict[str, JSON], shown: ShownCall, action: Action, ctx: Context
) -> list[Step]:
    """Record that the call begins, run it, and return what it said and its result.

    A call that only reads records no start: its result says when it `began`.
    """
    run = ctx.run
    attempt = len(run.view.at(ctx.path, "action_start")) + 1
    began: dict[str, JSON] = {}
    run.raise_if_stopped()
    try:
        given = put_in(tool, payload, run)
    except ToolError as error:
        raise not_started_error(run.view, ctx.path, error.code, error.message) from error
    if tool.idempotent and tool.risk is Risk.READ:
        began = {"began": run.services.now().isoformat()}
    else:
        start = {"attempt": attempt, "digest": shown.digest, "fence": run.fence}
        run.stage(Step(run.worker, "action_start", start, path=ctx.path))
    await run.flush()  # the request for the call is recorded before anything reaches outside
    call = new_call(tool, given, ctx.path, run, attempt)
    call.change = shown.change
    if asked := run.view.call(gate_of(run.view, ctx.path)):
        call.reason = asked.payload["payload"]["reason"]
    limit = _limit(tool, ctx)
    if not run.services.may_begin():
        raise Fenced  # it froze after recording the start, and its lease is about to end
    try:
        returned = await run.effect(_invoke(tool, call), limit.seconds)
    except TimeoutError as late:
        goes_on = isinstance(late, Abandoned) or not inspect.iscoroutinefunction(tool.function)
        if goes_on and not tool.idempotent and limit.of_turn is None:
            run.stage(abandoned_note(ctx.path, limit.seconds))
            return await run_tool(tool, action, ctx)  # which asks what became of it
        steps = [_out_of_time(tool, limit, goes_on)]
    except ToolError as error:
        steps = [action_error(actors.tool(tool.name), hide(error.code), error.message)]
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is its result (R16)
        steps = [action_error(actors.tool(tool.name), "exception", f"{type(error).__name__}: {error}")]
    else:
        steps = await _outcome(tool, returned, call, run)
    finally:
        call.services = PlainServices(user=run.services.user, prompt=run.services.prompt)  # for an abandoned tool
    *said, result = steps
    return [*said, replace(result, payload=result.payload | began)]


def _out_of_time(tool: Tool, limit: TimeLimit, goes_on: bool) -> Step:
    """Return the error of a call that was ended by its limit; `goes_on`: it could not be stopped."""
    why = f"{'Not waited for any longer than' if goes_on else 'Stopped after'} {limit}."
    if limit.of_turn is not None and tool.risk is not Risk.READ:
        why += f" {HAD_BEGUN}"
    if goes_on:
        why += " It may still be running."
    return action_error(actors.tool(tool.name), "timeout", why)


async def _invoke(tool: Tool, call: ToolCall[Any, Any]) -> object:
    """Call the tool's function. What it raises must not be mistaken for a signal to the runtime."""
    try:
        if inspect.iscoroutinefunction(tool.function):
            return await tool.function(call)
        return await threads.in_thread(tool.function, call)
    except (TimeoutError, SystemExit) as error:
        raise ToolError(f"{type(error).__name__}: {error}", code="exception") from error
    except asyncio.CancelledError as error:
        if is_being_cancelled():
            raise  # cancelled by the time limit, or because the turn was stopped
        raise ToolError("CancelledError: the tool gave itself up", code="exception") from error


async def _outcome(tool: Tool, returned: object, call: ToolCall[Any, Any], run: Runtime) -> list[Step]:
    """Return the outputs, state and result of a call that ran; only the error `not_kept` if they cannot be saved.

    An error of the site itself is raised: then, as after a crash, nobody knows what became of the call.
    """
    by = actors.tool(tool.name)
    try:
        output = plain_json(returned)
        state = state_steps(tool.plugin, call.state, by, run.view) if tool.plugin else []
    except Exception as error:  # noqa: BLE001 - whatever a tool brings, the call must not be mistaken for a failed one
        return [_not_kept(by, f"{type(error).__name__}: {error}")]
    try:
        emitted = await _emitted_steps(call, run)
    except ToolError as error:
        return [_not_kept(by, error.message)]
    return [*emitted, *state, action_result(by, output)]


def _not_kept(by: str, why: str) -> Step:
    error = NotKept(why)
    return action_error(by, error.code, error.message)


async def _emitted_steps(call: ToolCall[Any, Any], run: Runtime) -> list[Step]:
    """Return the emitted steps, in order, after storing the content of the files they name."""
    ids = [
        await run.services.save_file(hide(name), content, media_type, hide(summary))
        for name, content, media_type, summary in call.saving
    ]
    return [Step(s.actor, s.type, s.payload | {"file": ids.pop(0)}) if s.type == "file" else s for s in call.emitted]
