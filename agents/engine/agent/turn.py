"""The policy `agent`: one turn, from what a person said to an answer (S15)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal

from agents.engine.agent.batch import run_batch, without_result
from agents.engine.agent.history import History
from agents.engine.agent.projection import GO_ON, NOBODY_SPOKE
from agents.engine.closing import turn_result
from agents.engine.interfaces.attached import Attachment
from agents.engine.interfaces.provider import CUT_BY, PARSE_FAILURE
from agents.engine.ledger import JSON, Step, action_error
from agents.engine.limits import Limits
from agents.engine.paths import join
from agents.engine.runtime.clock import Clock
from agents.engine.runtime.decorators import calls_in
from agents.engine.runtime.policy import Action, Context, Policy, records_itself
from agents.engine.tools.plugin import Plugin, Round
from agents.engine.tools.tool import Tool

logger = logging.getLogger(__name__)

PROMPT = (
    "You are a helpful assistant. Some of your tools wait for a person's approval; you need not ask for it yourself."
)

WRAP_UP = "Only {left} more answers are left in this turn, this one included: come to an end and say where you stand."
ONCE_MORE = "The person asks for another answer to the same message. What was said to it before stands above."
"""Told in a turn that repeats another."""

LIMITS = ("max_rounds", "timeout", "parse_failures", "quota")
"""What may stop a turn that could go on."""

NO_ANSWER = {
    "context_overflow": "The conversation has grown longer than the model can read",
    "empty_answer": "The model answered nothing, also when it was asked again",
    "incomplete": "The model's answer was cut off before it said anything",
}
"""Errors of a model that a person can do something about, in that person's words."""


def agent(
    *,
    tools: Callable[[], Iterable[Tool]] = tuple,
    plugins: Callable[[], Iterable[Plugin]] = tuple,
    prompt: str = PROMPT,
    rounds: int | None = None,
    seconds: float | None = None,
    parse_failures: int | None = None,
    protocol: Literal["native", "json"] | None = None,
) -> Policy:
    """An agent with these tools and plugins, asked for anew each turn.

    `rounds`, `seconds` (of running time) and `parse_failures` (in a row) are its budget, `protocol` how its model asks
    for calls; each as the site has it where it is left out (R1, R3). The time of an agent that another policy calls
    begins with its first round, and ends with its caller's at the latest.

    Its payload: `text` (what was said; none in a turn that the system started), `files` (what was given with it),
    `tier`, `system` (instead of `prompt`), `continues` (the turn that this one goes on with), `repeats` (the turn whose
    message this one answers once more).
    """
    own = {"rounds": rounds, "seconds": seconds, "parse_failures": parse_failures}
    budget: dict[str, Any] = {name: value for name, value in own.items() if value is not None}

    @records_itself
    async def policy(action: Action, ctx: Context) -> list[Step]:
        """Ask the model, do what it asks for, until it has nothing more to ask: one turn.

        A round that stands in the ledger costs a look-up; work goes on at the first call without a result.
        """
        limits = replace(ctx.run.limits, **budget)
        if not ctx.path:
            ctx.run.rounds_granted = limits.rounds
        base = action.payload.get("system") or prompt
        turn = ctx.turn = AgentTurn(ctx, list(tools()), _by_order(plugins()), base, limits=limits, protocol=protocol)
        for number in range(1, limits.rounds + 1):
            answer = await ctx.call(Action("model", {"round": number}), key=str(number), hold=True)
            if why := turn.fatal_error(answer[-1]):
                return failed(ctx, why)
            if not (asked := calls_in(answer)):
                if answer[-1].failed:
                    continue  # it could not be read: the model is told so
                return _completed(ctx, _answer_text(answer), CUT_BY.get(answer[-1].payload.get("finish", "")))
            if todo := without_result(ctx, asked):
                await run_batch(ctx, todo, await turn.tools_of(number))
            if last := _terminating_result(ctx, asked):
                return [finish(ctx, "terminate", last.payload.get("output"))]
        return failed(ctx, _limit_error("max_rounds", f"Stopped after {limits.rounds} rounds, the limit of one turn."))

    return policy


class AgentTurn:
    """What an agent's rounds share: its tools and plugins, its budget, its protocol, and its history.

    `unread` is how many answers in a row could not be read, `clock` its running time.
    """

    def __init__(
        self,
        ctx: Context,
        tools: list[Tool],
        plugins: list[Plugin],
        prompt: str,
        *,
        limits: Limits,
        protocol: str | None,
    ) -> None:
        self.ctx, self.tools, self.plugins, self.prompt = ctx, tools, plugins, prompt
        self.limits, self.protocol, self.unreadable = limits, protocol, 0
        self.clock = Clock(ctx.run.recorder, ctx.path, limits.seconds, ctx.clock if ctx.path else None)
        self.input: str | None = ctx.action.payload.get("text")
        self.tier: str = ctx.action.payload.get("tier", "normal")
        given = () if ctx.path else Attachment.recorded_in(ctx.action.payload)
        said = self.input or (None if given else self._placeholder())
        self.history = History(ctx.run.recorder, ctx.run.limits, ctx.path, said, given)
        self._round: Round | None = None

    def _placeholder(self) -> str:
        """What stands where nobody said anything: many model servers want a message of the user to answer."""
        return GO_ON if self.ctx.action.payload.get("continues") else NOBODY_SPOKE

    async def prepare_round(self, number: int) -> Round:
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
            if self.ctx.action.payload.get("repeats"):
                round.context.append(ONCE_MORE)
            left = self.limits.rounds - number + 1
            if left <= self.limits.wrap_up < self.limits.rounds:
                round.context.append(WRAP_UP.format(left=left))
            await round.prepare_tools(self.plugins)
            self._round = round
        return self._round

    async def tools_of(self, number: int) -> dict[str, Tool]:
        """The tools of round `number` by name."""
        return await (await self.prepare_round(number)).prepare_tools(self.plugins)

    def fatal_error(self, result: Step) -> Step | None:
        """The error that ends the turn with this answer; None where it goes on (S51)."""
        if not result.failed:
            self.unreadable = 0
            return None
        if result.payload["code"] != PARSE_FAILURE:
            return result
        self.unreadable += 1
        if self.unreadable < self.limits.parse_failures:
            return None
        # What was wrong with them is told to the model, in words that quote it: no raw call is shown to people.
        return _limit_error(
            "parse_failures", f"Stopped, because {self.unreadable} answers of the model in a row could not be read."
        )


def _terminating_result(ctx: Context, asked: list[Step]) -> Step | None:
    """The result that ends the turn: of a call that the model said is its last one, and that worked (R12)."""
    results = [ctx.run.view.result(call.path) for call in asked if call.payload.get("terminate") is True]
    return next((result for result in results if result and not result.failed), None)


def _answer_text(answer: list[Step]) -> str:
    return "\n\n".join(step.payload["text"] for step in answer if step.type == "text")


def _completed(ctx: Context, words: str, cut: str | None) -> list[Step]:
    """The end of a turn by the model's last words; where they were `cut`, a text says so to whoever reads them.

    It is completed all the same: all that was said is there, and the person may ask for the rest.
    """
    if cut is None:
        return [finish(ctx, "text", words)]
    told = f"The answer was {cut}."
    if ctx.path:
        return [finish(ctx, "text", f"{words}\n[{told}]")]
    return [_notice(told), finish(ctx, "text", words)]


def _notice(told: str) -> Step:
    return Step("system", "text", {"text": told, "role_hint": "system"})


def finish(ctx: Context, stop_reason: str, output: JSON) -> Step:
    """The end of a turn that came to its answer; of a sub-agent's, `output` is what its caller gets."""
    if not ctx.path:
        return turn_result(ctx.run.view, "completed", stop_reason)
    return Step("runtime", "action_result", {"output": output, "stop_reason": stop_reason})


def _limit_error(code: str, message: str) -> Step:
    return action_error("runtime", code, message)


def failed(ctx: Context, why: Step) -> list[Step]:
    """The end of a turn that a limit or the model stopped: a text that says so, and the result (R2).

    `why` is the error: of the `runtime` where a limit stopped it, else the model's.
    """
    code, message = why.payload["code"], why.payload["message"]
    logger.warning("a turn was stopped: %s", code, extra={"prompt": ctx.services.prompt, "path": ctx.path})
    if ctx.path:
        return [action_error("runtime", code, message)]
    limit = why.actor == "runtime" and code in LIMITS
    told = f"{NO_ANSWER[code]} ({code}): {message}" if code in NO_ANSWER else message
    return [_notice(told), turn_result(ctx.run.view, "failed", code if limit else "model_error")]


def _by_order(plugins: Iterable[Plugin]) -> list[Plugin]:
    return sorted(plugins, key=lambda plugin: (plugin.order, plugin.name))
