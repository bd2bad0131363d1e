"""The batch: the calls of one answer. Which of them run, which wait for a person, and in what order (R6)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby

from agents.engine import paths
from agents.engine.agent.offered import OfferedPolicy
from agents.engine.closing import cancelled_gate
from agents.engine.errors import Suspended, ToolError
from agents.engine.execution.effect import OpenedGate, as_policy, new_call, open_gate, unrunnable
from agents.engine.execution.gates import approval_reason, card_of, decision_at, gate_of
from agents.engine.execution.secrets import refused_reference
from agents.engine.ledger import Step, action_error
from agents.engine.runtime.policy import Context
from agents.engine.tools.tool import Risk, Tool, wire_name


async def run_batch(ctx: Context, todo: list[Step], tools: Mapping[str, Tool]) -> None:
    """Give each of these calls of one answer its result. Raises Suspended if a person must decide first.

    They run in call order; consecutive calls that only read run concurrently. Once a person is asked, nothing runs
    until every question is answered, be it a gate known beforehand or one that a call needs when about to run (R6).
    """
    while todo := without_result(ctx, todo):  # opening gates also ends the calls that cannot work
        if any(_waits(ctx, call) for call in todo):
            await _open_gates(ctx, todo, tools)
            continue
        free = await _calls_before_a_gate(ctx, todo, tools)
        for group in _parallel_groups(free, tools):
            await _settle_all(ctx, group, todo, tools)
        if todo := todo[len(free) :]:
            await _open_gates(ctx, todo, tools)
            await _settle_all(ctx, [todo[0]], todo, tools)


async def _settle_all(ctx: Context, group: list[Step], todo: list[Step], tools: Mapping[str, Tool]) -> None:
    """Settle these calls concurrently. If one must wait, the gates of the rest of `todo` are opened with it."""
    try:
        await ctx.gather(*(settle(ctx, call, tools) for call in group))
    except Suspended:
        await _open_gates(ctx, without_result(ctx, todo), tools)
        raise


def without_result(ctx: Context, asked: list[Step]) -> list[Step]:
    """Return the calls that have no result yet."""
    return [call for call in asked if not ctx.run.view.result(call.path)]


async def settle(ctx: Context, call: Step, tools: Mapping[str, Tool]) -> None:
    """Give one call its result: refused, rejected, or run once as approved."""
    if why := _invalid(ctx, call, tools):
        await ctx.refuse(call, why)
    else:
        tool = tools[call.payload["policy"]]
        policy = tool.registered.policy if isinstance(tool, OfferedPolicy) else as_policy(tool)
        # Reading again after a crash changes nothing, so the result waits for the next round's start: one record less.
        await ctx.invoke(call, policy, hold=tool.risk is Risk.READ and tool.idempotent is True)


def _invalid(ctx: Context, call: Step, tools: Mapping[str, Tool]) -> ToolError | None:
    """Return the error of a call that cannot run anyway: unknown tool or invalid input (S22, S27). None if it can."""
    name, raw = call.payload["policy"], call.payload.get("raw")
    tool = tools.get(name)
    if tool is None:
        # The model has the names before it. People read this too, and are shown no list of tools (R8).
        why = ToolError(f"No tool {wire_name(name)!r}. Call tools by the names that you were given.", "unknown_tool")
    elif raw is not None:
        why = ToolError(f"The arguments are not a JSON object: {raw[:200]!r}", "invalid_input")
    elif problem := refused_reference(ctx.run.view, call.path, call.payload["payload"], frozenset()) or tool.problem(
        call.payload["payload"]
    ):
        why = ToolError(problem, "invalid_input")
    else:
        return None
    return unrunnable(ctx.run.view, call.path, why)


def _began(ctx: Context, call: Step) -> bool:
    return bool(ctx.run.view.at(call.path, "action_start"))


async def _calls_before_a_gate(ctx: Context, todo: list[Step], tools: Mapping[str, Tool]) -> list[Step]:
    """Return the calls before the first one that has a gate or needs one."""
    free: list[Step] = []
    for call in todo:
        if not _invalid(ctx, call, tools) and not _began(ctx, call):
            tool = tools[call.payload["policy"]]
            waits = ctx.run.view.call(paths.gate(call.path)) or await approval_reason(
                tool, new_call(tool, call.payload["payload"], call.path, ctx.run)
            )
            if waits:
                break
        free.append(call)
    return free


def _parallel_groups(free: list[Step], tools: Mapping[str, Tool]) -> list[list[Step]]:
    """Group consecutive calls that may run concurrently, keeping the order."""

    def only_reads(call: Step) -> bool:
        tool = tools.get(call.payload["policy"])
        return tool is not None and tool.risk is Risk.READ and tool.plugin is None

    groups: list[list[Step]] = []
    for together, consecutive in groupby(free, only_reads):
        calls = list(consecutive)
        groups += [calls] if together else [[call] for call in calls]
    return groups


async def _open_gates(ctx: Context, todo: list[Step], tools: Mapping[str, Tool]) -> None:
    """Open every gate of the batch at once; the other calls wait, and those that cannot run get their errors now.

    Raises Suspended while any gate or card is undecided. Returns if every one is decided.
    """
    steps, deferred, changing = list[Step](), list[Step](), _changing_paths(ctx, todo)
    uses: dict[str, tuple[str, ...]] = {}
    for call in todo:
        if _began(ctx, call) and _is_open(ctx, card_of(ctx.run.view, call.path)):
            continue  # only its owner knows what became of it, whatever the tool has become
        if why := _invalid(ctx, call, tools):
            gate = gate_of(ctx.run.view, call.path)
            steps += [cancelled_gate(gate)] if _is_open(ctx, gate) else []
            steps.append(action_error("runtime", why.code, why.message, path=call.path))
        elif not ctx.run.view.call(paths.gate(call.path)) and not _began(ctx, call):
            tool = tools[call.payload["policy"]]
            try:
                opened = await open_gate(tool, call.payload["payload"], call.path, ctx, changing)
            except ToolError as error:
                opened = OpenedGate((action_error("runtime", error.code, error.message, path=call.path),))
            steps += opened.steps
            uses |= opened.uses
            if not opened.steps and not ctx.run.view.at(call.path, "action_deferred"):
                deferred.append(Step("runtime", "action_deferred", path=call.path))
    ctx.run.stage(*(step for step in steps if not ctx.run.view.result(step.path)), uses=uses)
    if uses:
        await ctx.run.flush()  # a decision whose means are used up is taken out
    if any(_waits(ctx, call) for call in todo):
        ctx.run.stage(*deferred)
        raise Suspended


def _changing_paths(ctx: Context, todo: list[Step]) -> set[str]:
    """Return the paths that calls with a gate or card may still change."""
    view = ctx.run.view
    asked = [view.call(place) for call in todo for place in (gate_of(view, call.path), card_of(view, call.path))]
    decided = [(step, decision_at(view, step.path)) for step in asked if step]
    may = [step for step, decision in decided if decision is None or decision.runs]
    return {change["path"] for step in may if (change := step.payload["payload"].get("change"))}


def _waits(ctx: Context, call: Step) -> bool:
    view = ctx.run.view
    return _is_open(ctx, gate_of(view, call.path)) or _is_open(ctx, card_of(view, call.path))


def _is_open(ctx: Context, gate: str) -> bool:
    return ctx.run.view.call(gate) is not None and decision_at(ctx.run.view, gate) is None
