"""The policy `agent`: one turn, from a person's message to the answer (S15)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal

from agents.engine.agent.batch import run_batch, without_result
from agents.engine.agent.history import History
from agents.engine.agent.projection import GO_ON, NOBODY_SPOKE
from agents.engine.closing import notice, turn_result
from agents.engine.interfaces.attached import Attachment
from agents.engine.interfaces.provider import CUT_BY, PARSE_FAILURE
from agents.engine.ledger import JSON, Step, action_error
from agents.engine.limits import Limits
from agents.engine.paths import join
from agents.engine.runtime.action import Action
from agents.engine.runtime.clock import Clock
from agents.engine.runtime.decorators import calls_in
from agents.engine.runtime.policy import Context, Policy, records_itself
from agents.engine.tools.plugin import Plugin, Round
from agents.engine.tools.tool import Tool

logger = logging.getLogger(__name__)

PROMPT = (
    "You are a helpful assistant. Some of your tools wait for a person's approval; you need not ask for it yourself."
)

WRAP_UP = "Only {left} more answers are left in this turn, this one included: finish, and say where you stand."
ONCE_MORE = "The person asks for another answer to the same message. Earlier answers to it are above."
"""Added to the system text of a turn that repeats another."""

LIMITS = ("max_rounds", "timeout", "parse_failures", "quota")
"""The limits that may stop a turn; it can be continued."""

NO_ANSWER = {
    "context_overflow": "The conversation has become too long for the model",
    "empty_answer": "The model gave an empty answer, even when asked again",
    "incomplete": "The model's answer was cut off before it said anything",
}
"""Plain words for the errors of a model that a person can do something about."""


def agent(
    *,
    tools: Callable[[], Iterable[Tool]] = tuple,
    plugins: Callable[[], Iterable[Plugin[Any]]] = tuple,
    prompt: str = PROMPT,
    rounds: int | None = None,
    seconds: float | None = None,
    parse_failures: int | None = None,
    protocol: Literal["native", "json"] | None = None,
) -> Policy:
    """Return an agent with these tools and plugins, which are looked up each turn.

    `rounds`, `seconds` (of running time) and `parse_failures` (in a row) are its budget, and `protocol` is how its
    model asks for calls; each defaults to the site's setting (R1, R3). The time of an agent that another policy calls
    begins with its first round, and ends with its caller's at the latest.

    Its payload: `text` (the person's message; none in a turn that the system started), `files` (its attachments),
    `tier`, `system` (instead of `prompt`), `continues` (the turn that this one continues), `repeats` (the turn whose
    message this one answers again).
    """
    own = {"rounds": rounds, "seconds": seconds, "parse_failures": parse_failures}
    budget: dict[str, Any] = {name: value for name, value in own.items() if value is not None}

    @records_itself
    async def policy(action: Action, ctx: Context) -> list[Step]:
        """Ask the model and run the calls it asks for, until it asks for none: one turn.

        Replaying a round from the ledger costs a look-up; work continues at the first call without a result.
        """
        limits = replace(ctx.run.limits, **budget) if ctx.path else ctx.run.granted
        base = action.payload.get("system") or prompt
        turn = ctx.turn = AgentTurn(ctx, list(tools()), _by_order(plugins()), base, limits=limits, protocol=protocol)
        for number in range(1, limits.rounds + 1):
            answer = await ctx.call(Action("model", {"round": number}), key=str(number), hold=True)
            if why := turn.fatal_error(answer[-1]):
                return failed(ctx, why)
            if not (asked := calls_in(answer)):
                if answer[-1].failed:
                    continue  # the answer could not be read, and the model is told so
                return _completed(ctx, _answer_text(answer), CUT_BY.get(answer[-1].payload.get("finish", "")))
            if todo := without_result(ctx, asked):
                await run_batch(ctx, todo, (await turn.prepare_round(number)).tools_by_name)
            if last := _terminating_result(ctx, asked):
                return [finish(ctx, "terminate", last.value)]
        told = f"Stopped after {limits.rounds} rounds, the limit of one turn."
        return failed(ctx, action_error("runtime", "max_rounds", told))

    policy.budget = budget  # type: ignore[attr-defined]
    return policy


class AgentTurn:
    """What the rounds of an agent share: its tools and plugins, its budget, its protocol, and its history.

    `unreadable` counts the answers in a row that could not be read; `clock` measures its running time.
    """

    def __init__(
        self,
        ctx: Context,
        tools: list[Tool],
        plugins: list[Plugin[Any]],
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
        """Return what replaces a missing message: many model servers need a message of the user to answer."""
        return GO_ON if self.ctx.action.payload.get("continues") else NOBODY_SPOKE

    async def prepare_round(self, number: int) -> Round:
        """Return round `number` with its tools and context, prepared once when needed; never for a finished round."""
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
            await round.prepare(self.plugins)
            self._round = round
        return self._round

    def fatal_error(self, result: Step) -> Step | None:
        """Return the error with which this answer ends the turn; None if the turn continues (S51)."""
        if not result.failed:
            self.unreadable = 0
            return None
        if result.payload["code"] != PARSE_FAILURE:
            return result
        self.unreadable += 1
        if self.unreadable < self.limits.parse_failures:
            return None
        # Only the model is told what was wrong, in words that quote the answer: people are not shown raw calls.
        told = f"Stopped because {self.unreadable} answers of the model in a row could not be read."
        return action_error("runtime", "parse_failures", told)


def _terminating_result(ctx: Context, asked: list[Step]) -> Step | None:
    """Return the result that ends the turn: a successful call's, if the model marked it as the last (R12)."""
    results = [ctx.run.view.result(call.path) for call in asked if call.payload.get("terminate") is True]
    return next((result for result in results if result and not result.failed), None)


def _answer_text(answer: list[Step]) -> str:
    return "\n\n".join(step.payload["text"] for step in answer if step.type == "text")


def _completed(ctx: Context, words: str, cut: str | None) -> list[Step]:
    """Return the end of a turn with the model's final text; if it was `cut`, a notice says so.

    The turn is completed all the same: the text is there, and the person can ask for the rest.
    """
    if cut is None:
        return [finish(ctx, "text", words)]
    told = f"The answer was {cut}."
    if ctx.path:
        return [finish(ctx, "text", f"{words}\n[{told}]")]
    return [notice(told), finish(ctx, "text", words)]


def finish(ctx: Context, stop_reason: str, output: JSON) -> Step:
    """Return the end of a turn with an answer; for a sub-agent, `output` is what its caller gets."""
    if not ctx.path:
        return turn_result(ctx.run.view, "completed", stop_reason)
    return Step("runtime", "action_result", {"output": output, "stop_reason": stop_reason})


def failed(ctx: Context, why: Step) -> list[Step]:
    """Return the end of a turn that a limit or the model stopped: a text that says so, and the result (R2).

    `why` is the error: by the `runtime` if a limit stopped it, else by the model.
    """
    code, message = why.payload["code"], why.payload["message"]
    logger.warning("a turn was stopped: %s", code, extra={"prompt": ctx.services.prompt, "path": ctx.path})
    if ctx.path:
        return [action_error("runtime", code, message)]
    limit = why.actor == "runtime" and code in LIMITS
    told = f"{NO_ANSWER[code]} ({code}): {message}" if code in NO_ANSWER else message
    return [notice(told), turn_result(ctx.run.view, "failed", code if limit else "model_error")]


def _by_order(plugins: Iterable[Plugin[Any]]) -> list[Plugin[Any]]:
    return sorted(plugins, key=lambda plugin: (plugin.order, plugin.name))
