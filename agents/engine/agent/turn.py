"""The policy `agent`: one turn, from a person's message to the answer (S15)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal

from agents.engine.agent.assignment import Assignment, registered_tool
from agents.engine.agent.batch import run_batch, without_result
from agents.engine.agent.final_answer import HOW_TO_ANSWER
from agents.engine.agent.history import History
from agents.engine.agent.projection import line_of
from agents.engine.closing import notice, turn_result
from agents.engine.interfaces.attached import input_messages
from agents.engine.interfaces.provider import CUT_BY, FINAL_ANSWER, PARSE_FAILURE
from agents.engine.ledger import JSON, Step, action_error, text
from agents.engine.paths import join
from agents.engine.runtime.action import Action
from agents.engine.runtime.clock import Clock
from agents.engine.runtime.decorators import calls_in
from agents.engine.runtime.marks import records_itself
from agents.engine.runtime.policy import Context, Policy
from agents.engine.tools.plugin import Plugin, Round
from agents.engine.tools.tool import Tool

logger = logging.getLogger(__name__)

PROMPT = (
    "You are a helpful assistant. Some of your tools wait for a person's approval; you need not ask for it yourself."
)

WRAP_UP = "Only {left} more answers are left in this turn, this one included: finish, and say where you stand."
ONCE_MORE = "The person asks for another answer to the same message. Earlier answers to it are above."
"""Added to the system text of a turn that repeats another."""

MODEL_ERROR = "model_error"
"""The stop reason of a turn whose model did not answer. The result of its last round has the code and the message."""

LIMITS = ("max_rounds", "timeout", "parse_failures", "quota")
"""The limits that may stop a turn; it can be continued."""


def agent(
    *,
    tools: Sequence[Tool] = (),
    plugins: Sequence[Plugin[Any] | type[Plugin[Any]]] = (),
    prompt: str = "",
    rounds: int | None = None,
    seconds: float | None = None,
    parse_failures: int | None = None,
    protocol: Literal["native", "json"] | None = None,
) -> Policy:
    """Return an agent with these tools and plugins, which are looked up each turn. A plugin may be given as its class.

    `rounds`, `seconds` (of running time) and `parse_failures` (in a row) are its budget, and `protocol` is how its
    model asks for calls; each defaults to the site's setting (R1, R3). The time of an agent that another policy calls
    begins with its first round, and ends with its caller's at the latest.

    Its payload: `text` (the person's message; none in a turn that the system started). Of a turn that it is the root
    of, the site says more: `files` (attached to the message), `quotes` (texts that a client sent along, as said before
    it), `form` (of the answer, if a client wants one: a JSON Schema as `schema`, and its `description`), `tier`,
    `system` (a system prompt of the site, whose text replaces `prompt`), `continues` (the turn that this one
    continues), `repeats` (the turn whose message this one answers again), `trigger` (its number, of a turn that one
    started) and the `reminder` that it gives. If another policy calls it, it knows nothing
    of the conversation, and may be told more: `tools` (the names of all that it may use), `rounds` (its most), and
    `output`, a pydantic model: the form of its answer. The model then gives it by the tool FINAL_ANSWER; one that does
    not fit, or is in words, is asked for again, as often as an answer that cannot be read.
    """
    own = {"rounds": rounds, "seconds": seconds, "parse_failures": parse_failures}
    budget: dict[str, Any] = {name: value for name, value in own.items() if value is not None}

    @records_itself
    async def policy(action: Action, ctx: Context) -> list[Step]:
        """Ask the model and run the calls it asks for, until it asks for none: one turn.

        Replaying a round from the ledger costs a look-up; work continues at the first call without a result.
        """
        task = Assignment.of(ctx, tools, budget)
        turn = ctx.turn = AgentTurn(ctx, task, _by_order(plugins), prompt, protocol=protocol)
        for number in range(1, task.limits.rounds + 1):
            answer = await ctx.call(Action("model", {"round": number}), key=str(number), hold=True)
            if todo := without_result(ctx, asked := calls_in(answer)):
                await run_batch(ctx, todo, (await turn.prepare_round(number)).tools_by_name)
            if ending := turn.ending(asked):
                return ending
            if why := turn.fatal_error(answer[-1], asked):
                return failed(ctx, why)
            if not asked and not answer[-1].failed:  # else it could not be read, and the model is told so
                return _completed(ctx, _answer_text(answer), CUT_BY.get(answer[-1].payload.get("finish", "")))
        told = f"Stopped after {task.limits.rounds} rounds, {'its limit' if ctx.path else 'the limit of one turn'}."
        return failed(ctx, action_error("runtime", "max_rounds", told))

    policy.budget, policy.prompt = budget, prompt  # type: ignore[attr-defined]
    return policy


class AgentTurn:
    """What the rounds of an agent share: its tools and plugins, its budget, its protocol, and its history.

    `line` is the site's, if nobody said anything. `unreadable` counts the answers in a row that could not be read;
    `clock` measures its running time.
    """

    def __init__(
        self, ctx: Context, task: Assignment, plugins: list[Plugin[Any]], prompt: str, *, protocol: str | None
    ) -> None:
        self.ctx, self.task, self.plugins = ctx, task, plugins
        self.prompt: str = task.system or prompt or PROMPT
        self.limits, self.protocol, self.unreadable = task.limits, protocol, 0
        self.clock = Clock(ctx.run.recorder, ctx.path, self.limits.seconds, ctx.clock if ctx.path else None)
        self.input: str | None = task.told.get("text")
        self.tier: str = task.told.get("tier", "normal")
        self.reminder: str | None = task.told.get("reminder")
        said = [] if self.reminder is not None else input_messages(self.input, task.files, task.quotes)
        self.line = "" if said else line_of(bool(task.told.get("continues")), self.reminder, task.files)
        self.history = History(ctx.run.recorder, ctx.run.limits, ctx.path, said, self.line)
        self._round: Round | None = None

    async def prepare_round(self, number: int) -> Round:
        """Return round `number` with its tools and context, prepared once when needed; never for a finished round."""
        if self._round is None or self._round.number != number:
            run, path = self.ctx.run, join(self.ctx.path, number)
            round = Round(
                number,
                path,
                input=self.input if self.input is not None else self.reminder,
                base=self.prompt,
                tools=self.task.tools,
                view=run.view,
                services=run.services,
                limits=self.limits,
                only=self.task.only,
                final=self.task.final,
                installed=partial(registered_tool, run),
            )
            if self.task.told.get("repeats"):
                round.context.append(ONCE_MORE)
            if self.task.final:
                round.context.append(HOW_TO_ANSWER)
            left = min(self.limits.rounds - number + 1, run.rounds_left(path))
            if left <= self.limits.wrap_up < self.limits.rounds:
                round.context.append(WRAP_UP.format(left=left))
            await round.prepare(self.plugins)
            self._round = round
        return self._round

    def ending(self, asked: list[Step]) -> list[Step]:
        """Return the end of the turn, if one of these calls has ended it; else nothing.

        That is a successful one that the model marked as the last (R12), or the one that gives the answer.
        """
        view = self.ctx.run.view
        done = [(call, result) for call in asked if (result := view.result(call.path)) and not result.failed]
        for call, result in done:
            if self.task.final and call.payload["policy"] == FINAL_ANSWER:
                return _answered(self.ctx, call.payload["payload"])
            if not self.task.final and call.payload.get("terminate") is True:
                return [finish(self.ctx, "terminate", result.value)]
        return []

    def fatal_error(self, result: Step, asked: list[Step]) -> Step | None:
        """Return the error with which an answer that asked for these calls ends the turn; None if it goes on (S51)."""
        if result.failed and result.payload["code"] != PARSE_FAILURE:
            return result
        refused = self.task.final and any(call.payload["policy"] == FINAL_ANSWER for call in asked)
        self.unreadable = self.unreadable + 1 if result.failed or refused else 0
        if self.unreadable < self.limits.parse_failures:
            return None
        # Only the model is told what was wrong, in words that quote the answer: people are not shown raw calls.
        wrong = "did not have the form that was asked for" if self.task.final else "could not be read"
        told = f"Stopped because {self.unreadable} answers of the model in a row {wrong}."
        return action_error("runtime", "parse_failures", told)


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


def _answered(ctx: Context, answer: JSON) -> list[Step]:
    """Return the end of a turn with an answer that has a form. Of a whole turn, people are shown it as JSON."""
    shown = [] if ctx.path else [text("model", json.dumps(answer, ensure_ascii=False, indent=2))]
    return [*shown, finish(ctx, "answer", answer)]


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
    return [notice(message), turn_result(ctx.run.view, "failed", code if limit else MODEL_ERROR)]


def _by_order(given: Iterable[Plugin[Any] | type[Plugin[Any]]]) -> list[Plugin[Any]]:
    plugins = [plugin() if isinstance(plugin, type) else plugin for plugin in given]
    return sorted(plugins, key=lambda plugin: (plugin.order, plugin.name))
