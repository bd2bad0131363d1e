"""The policy `agent`: one turn, from what a person said to an answer (S15)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from agents.engine.approval import decision_at, requirement
from agents.engine.attached import Attached
from agents.engine.closing import end
from agents.engine.decorators import calls
from agents.engine.effect import gate, interrupted, new_call
from agents.engine.errors import Suspended, ToolError
from agents.engine.history import History
from agents.engine.ledger import JSON, Step, action_error
from agents.engine.plugin import Plugin
from agents.engine.policy import Action, Policy, records_itself
from agents.engine.round import Round
from agents.engine.tools import Risk, Tool
from agents.engine.view import join

if TYPE_CHECKING:
    from agents.engine.runtime import Context

PROMPT = (
    "You are a helpful assistant. Some of your tools wait for a person's approval; you need not ask for it yourself."
)

WRAP_UP = "Only {left} more answers are left in this turn, this one included: come to an end and say where you stand."
GO_ON = "Your last turn ended before its work was done, and the person asks you to go on: take it up where it stopped."
"""Told in a turn that continues another: nobody said anything new in it."""


def agent(
    *,
    tools: Callable[[], Iterable[Tool]] = tuple,
    plugins: Callable[[], Iterable[Plugin]] = tuple,
    prompt: str = PROMPT,
    rounds: int | None = None,
) -> Policy:
    """An agent with these tools and plugins, asked for anew each turn. `rounds`: its budget, else the site's.

    Its payload: `text` (what was said; none in a turn that the system started), `files` (what was given with it),
    `tier`, `system` (instead of `prompt`), `continues` (the turn that this one goes on with).
    """

    @records_itself
    async def policy(action: Action, ctx: Context) -> list[Step]:
        """Ask the model, do what it asks for, until it has nothing more to ask: one turn.

        A round that stands in the ledger costs a look-up; work goes on at the first call without a result.
        """
        limit = rounds or ctx.run.limits.rounds
        if not ctx.path:
            ctx.run.rounds_granted = limit
        turn = ctx.turn = Turn(ctx, list(tools()), _ordered(plugins()), action.payload.get("system") or prompt, limit)
        for number in range(1, limit + 1):
            answer = await ctx.call(Action("model", {"round": number}), key=str(number), hold=True)
            if answer[-1].failed:
                return failed(ctx, answer[-1].payload["code"], answer[-1].payload["message"])
            asked = calls(answer)
            if not asked:
                return [finish(ctx, "text", answer)]
            await run_batch(asked, turn, number)
        return failed(ctx, "max_rounds", f"Stopped after {limit} rounds, the limit of one turn.")

    return policy


class Turn:
    """What an agent's rounds share: its tools and plugins, its budget, and its history."""

    def __init__(self, ctx: Context, tools: list[Tool], plugins: list[Plugin], prompt: str, limit: int) -> None:
        self.ctx, self.tools, self.plugins, self.prompt, self.limit = ctx, tools, plugins, prompt, limit
        self.input: str | None = ctx.action.payload.get("text")
        self.tier: str = ctx.action.payload.get("tier", "normal")
        self.history = History(ctx.run, ctx.path, self.input, () if ctx.path else Attached.of(ctx.action.payload))
        self._round: Round | None = None

    async def prepared(self, number: int) -> Round:
        """Round `number` with its tools and context; prepared once, on first need, never for a round that is done."""
        if self._round is None or self._round.number != number:
            run, path = self.ctx.run, join(self.ctx.path, number)
            round = Round(
                number,
                path,
                input=self.input,
                base=self.prompt,
                tools=self.tools,
                view=run.view,
                services=run.services,
            )
            if self.ctx.action.payload.get("continues"):
                round.context.append(GO_ON)
            left = self.limit - number + 1
            if left <= run.limits.wrap_up < self.limit:
                round.context.append(WRAP_UP.format(left=left))
            await round.prepared(self.plugins)
            self._round = round
        return self._round

    async def tools_of(self, number: int) -> dict[str, Tool]:
        """The tools of round `number` by name."""
        return await (await self.prepared(number)).prepared(self.plugins)


async def run_batch(asked: list[Step], turn: Turn, number: int) -> None:
    """Give every call of one answer its result. Raises Suspended when a person must decide first.

    In call order; neighbours that only read run side by side. From the first gate on nothing runs until every gate is
    decided (R6).
    """
    ctx = turn.ctx
    todo = _without_result(ctx, asked)
    tools = await turn.tools_of(number) if todo else {}
    while todo := _without_result(ctx, todo):  # asking ends those that cannot work
        free = await _before_a_gate(ctx, todo, tools)
        for group in _side_by_side(free, tools):
            await ctx.gather(*(settle(ctx, call, tools) for call in group))
        if todo := todo[len(free) :]:
            await _ask(ctx, todo, tools)
            await settle(ctx, todo.pop(0), tools)


def _without_result(ctx: Context, asked: list[Step]) -> list[Step]:
    return [call for call in asked if not ctx.run.view.result(call.path)]


async def settle(ctx: Context, call: Step, tools: Mapping[str, Tool]) -> None:
    """One call to its result: refused, rejected, or run once with what was approved."""
    if why := _problem(ctx, call, tools):
        ctx.run.stage(*_closed_gate(ctx, call))
        await ctx.refuse(call, why.payload["code"], why.payload["message"])
    else:
        await ctx.invoke(call, tools[call.payload["policy"]])


def _problem(ctx: Context, call: Step, tools: Mapping[str, Tool]) -> Step | None:
    """The error of a call that nobody needs to decide: no such tool, or input that it does not take (S22, S27)."""
    name, raw = call.payload["policy"], call.payload.get("raw")
    tool = tools.get(name)
    if tool is None:
        there_are = ", ".join(sorted(tools)) or "none"
        why = action_error("runtime", "unknown_tool", f"No tool {name!r}. There are: {there_are}.")
    elif raw is not None:
        why = action_error("runtime", "invalid_input", f"The arguments are no JSON object: {raw[:200]!r}")
    elif problem := tool.problem(call.payload["payload"]):
        why = action_error("runtime", "invalid_input", problem)
    else:
        return None
    if _began(ctx, call):  # the tool was there, and took it, when the call began
        return interrupted(f"Nobody knows whether it ran: check before you ask again. {why.payload['message']}")
    return why


def _began(ctx: Context, call: Step) -> bool:
    return bool(ctx.run.view.at(call.path, "action_start"))


async def _before_a_gate(ctx: Context, todo: list[Step], tools: Mapping[str, Tool]) -> list[Step]:
    """The calls before the first one that has a gate or needs one."""
    free: list[Step] = []
    for call in todo:
        if not _problem(ctx, call, tools) and not _began(ctx, call):
            tool = tools[call.payload["policy"]]
            waits = ctx.run.view.call(join(call.path, "human")) or await requirement(
                tool, new_call(tool, call.payload["payload"], call.path, ctx.run)
            )
            if waits:
                break
        free.append(call)
    return free


def _side_by_side(free: list[Step], tools: Mapping[str, Tool]) -> list[list[Step]]:
    """`free` in order, neighbours that may run together in one group."""
    groups: list[list[Step]] = []
    together = False
    for call in free:
        tool = tools.get(call.payload["policy"])
        reads = tool is not None and tool.risk is Risk.READ and tool.plugin is None
        if reads and together:
            groups[-1].append(call)
        else:
            groups.append([call])
        together = reads
    return groups


async def _ask(ctx: Context, todo: list[Step], tools: Mapping[str, Tool]) -> None:
    """Ask every gate of the batch at once; the other calls wait, and those that cannot run get their errors now.

    Raises Suspended while a gate is undecided. Returns where none is (any more).
    """
    steps, deferred, changing = list[Step](), list[Step](), set[str]()
    for call in todo:
        if why := _problem(ctx, call, tools):
            steps += [*_closed_gate(ctx, call), replace(why, path=call.path)]
        elif not ctx.run.view.call(join(call.path, "human")):
            tool = tools[call.payload["policy"]]
            try:
                opened = await gate(tool, call.payload["payload"], call.path, ctx.run, changing)
            except ToolError as error:
                opened = [replace(action_error("runtime", error.code, error.message), path=call.path)]
            steps += opened
            if not opened and not ctx.run.view.at(call.path, "action_deferred"):
                deferred.append(Step("runtime", "action_deferred", path=call.path))
    ctx.run.stage(*(step for step in steps if not ctx.run.view.result(step.path)))
    if any(_undecided(ctx, call) for call in todo):
        ctx.run.stage(*deferred)
        raise Suspended


def _closed_gate(ctx: Context, call: Step) -> list[Step]:
    """The end of a gate whose call cannot run any more."""
    decided: dict[str, JSON] = {"decision": "cancelled", "via": "system"}
    gate = join(call.path, "human")
    return [Step("system", "action_result", decided, path=gate)] if _undecided(ctx, call) else []


def _undecided(ctx: Context, call: Step) -> bool:
    gate = join(call.path, "human")
    return ctx.run.view.call(gate) is not None and decision_at(ctx.run.view, gate) is None


def finish(ctx: Context, stop_reason: str, answer: list[Step]) -> Step:
    """The end of a turn that came to its answer; of a sub-agent's, its last words are what its caller gets."""
    if not ctx.path:
        return end(ctx.run.view, "completed", stop_reason)
    words = "\n\n".join(step.payload["text"] for step in answer if step.type == "text")
    return Step("runtime", "action_result", {"output": words, "stop_reason": stop_reason})


def failed(ctx: Context, code: str, message: str) -> list[Step]:
    """The end of a turn that a limit or the model stopped: a text that says so, and the result (R2)."""
    if ctx.path:
        return [action_error("runtime", code, message)]
    reason = code if code in ("max_rounds", "timeout", "parse_failures") else "model_error"
    notice = Step("system", "text", {"text": message, "role_hint": "system"})
    return [notice, end(ctx.run.view, "failed", reason)]


def _ordered(plugins: Iterable[Plugin]) -> list[Plugin]:
    return sorted(plugins, key=lambda plugin: (plugin.order, plugin.name))
