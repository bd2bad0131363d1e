"""The policy `model`: asks a provider once and returns the answer as steps. It does not run the calls (S116)."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from agents.engine.agent.attempts import ask_until_answered, rounds_message, timeout_message
from agents.engine.agent.ledger_history import ledger_messages
from agents.engine.agent.projection import NOBODY_SPOKE
from agents.engine.agent.turn import AgentTurn
from agents.engine.errors import RegistryError, ToolError
from agents.engine.interfaces.provider import (
    FINAL_ANSWER,
    PARSE_FAILURE,
    Answer,
    Provider,
    Request,
    ToolDefinition,
    ToolRequest,
)
from agents.engine.ledger import DEEPEST, JSON, Step, action_error, copy_json, text
from agents.engine.runtime.action import Action
from agents.engine.runtime.marks import records_itself
from agents.engine.runtime.policy import Context, Policy
from agents.engine.tools.tool import wire_name

logger = logging.getLogger(__name__)

ONLY_BY_CALL = f"Give your answer by a call of the tool {FINAL_ANSWER}, not in words."
"""What a model is told that answers in words where an answer of a given form is wanted."""


def model(provider: Provider, protocols: Mapping[str, Provider] | None = None) -> Policy:
    """Return the model policy for this provider; agents that name one of `protocols` use that instead (R1).

    With `{"round": n}` it asks for the n-th round of the agent that calls it. Without, the history is
    `payload["ledger"]`, the system text is `payload["system"]`, and the tools are `action.actions`. It raises ToolError
    for a round that no agent asks for, and if the model may not be asked, because running time, quota or the rounds of
    the turn are used up.
    """

    def provider_for(protocol: str | None) -> Provider:
        if protocol is None:
            return provider
        try:
            return (protocols or {})[protocol]
        except KeyError:
            raise RegistryError(f"an agent uses the protocol {protocol!r}, for which there is no provider") from None

    @records_itself
    async def ask(action: Action, ctx: Context) -> list[Step]:
        await _check_budget(ctx)
        if "round" not in action.payload:
            return await _ask_with_ledger(provider, action, ctx)
        if not isinstance(ctx.turn, AgentTurn):  # it would count as a round of an agent, and once more as a question
            raise ToolError("A `round` is an agent's: a program asks with a `ledger`.", "invalid_input")
        return await _ask_round(provider_for(ctx.turn.protocol), ctx.turn, int(action.payload["round"]), ctx)

    return ask


async def _ask_round(provider: Provider, turn: AgentTurn, number: int, ctx: Context) -> list[Step]:
    round = await turn.prepare_round(number)
    snapshot = round.snapshot()
    name = hashlib.sha256(snapshot.encode()).hexdigest()
    history, line = await turn.history.before(number, provider), "" if provider.needs_user else turn.line
    request = Request(turn.tier, round.system, round.definitions, history, line)
    start = {"snapshot": name, "history": turn.history.reference()}
    answer = await ask_until_answered(provider, request, ctx, start=start, snapshots={name: snapshot})
    if not isinstance(answer, Answer):
        return answer
    if turn.task.final and not answer.calls and not answer.unreadable:
        answer = replace(answer, unreadable=ONLY_BY_CALL)
    if answer.unreadable:
        about = {"prompt": ctx.services.prompt, "path": ctx.path}
        logger.warning("an answer could not be read: the round's result has all of it", extra=about)
        return [
            *round.writes(),
            unreadable_result(answer, f"This was try {turn.unreadable + 1} of {turn.limits.parse_failures}."),
        ]
    return [*answer_steps(answer, round.tool_named), *round.writes(), round_result(answer)]


async def _ask_with_ledger(provider: Provider, action: Action, ctx: Context) -> list[Step]:
    offered = [r for name in sorted(action.actions) if (r := ctx.run.registered(name))]
    tools = tuple(ToolDefinition(wire_name(r.name), r.description, r.schema) for r in offered)
    messages = ledger_messages(action.ledger, needs_user=provider.needs_user)
    tier, system = action.payload.get("tier", "normal"), action.payload.get("system", "")
    request = Request(tier, system, tools, [provider.encode(messages)], "" if messages else NOBODY_SPOKE)
    answer = await ask_until_answered(provider, request, ctx, start={}, snapshots={})
    if not isinstance(answer, Answer):
        return answer
    if answer.unreadable:
        return [unreadable_result(answer)]
    names = {wire_name(r.name): r.name for r in offered}
    return [*answer_steps(answer, lambda name: names.get(name, name)), round_result(answer)]


async def _check_budget(ctx: Context) -> None:
    """Raise ToolError if the model may not be asked now: rounds, running time or quota are used up (R3, C19)."""
    if ctx.run.rounds_left(ctx.path) <= 0:
        raise ToolError(rounds_message(ctx.run.granted.rounds), "max_rounds")
    if (limit := ctx.clock.expired()) is not None:
        raise ToolError(timeout_message(limit), "timeout")
    if why := await ctx.services.over_quota():
        raise ToolError(why, "quota")


def answer_steps(answer: Answer, tool_named: Callable[[str], str]) -> list[Step]:
    """Return an answer as steps: its reasoning and text, then the calls it asks for, by the tools' own names (S92)."""
    steps = [Step("model", "reasoning", {"text": answer.reasoning})] if answer.reasoning else []
    if answer.text.strip():  # blanks next to calls say nothing, and some APIs reject them when sent back
        steps.append(text("model", answer.text))
    for call in map(_limit_nesting, answer.calls):
        payload: dict[str, JSON] = {"policy": tool_named(call.name), "payload": call.arguments}
        if call.call_id:
            payload["call_id"] = call.call_id
        if call.raw is not None:
            payload["raw"] = call.raw
        if call.terminate:
            payload["terminate"] = True
        steps.append(Step("model", "action_call", payload))
    return steps


def _limit_nesting(call: ToolRequest) -> ToolRequest:
    """Return the call; if its arguments are nested too deeply, as one whose arguments cannot be read."""
    try:
        copy_json(call.arguments, levels=DEEPEST)
    except TypeError:
        return replace(call, arguments={}, raw=f"[nested more than {DEEPEST} levels deep]")
    return call


def round_result(answer: Answer) -> Step:
    """Return the result of a round: what it cost, and the provider's opaque items for later rounds."""
    payload = _cost(answer)
    if answer.items:
        payload["items"] = list(answer.items)
    return Step("model", "action_result", payload)


def unreadable_result(answer: Answer, which: str = "") -> Step:
    """Return the result of a round with an unreadable answer: the reason, all of the raw answer, and its cost (S51)."""
    why = f"{answer.unreadable} {which}".strip()
    return action_error("model", PARSE_FAILURE, why, raw=answer.text, **_cost(answer))


def _cost(answer: Answer) -> dict[str, JSON]:
    payload: dict[str, JSON] = {"usage": answer.usage, "model": answer.model, "finish": answer.finish}
    if answer.cost_nano_usd is not None:
        payload["cost_nano_usd"] = answer.cost_nano_usd
    return payload
