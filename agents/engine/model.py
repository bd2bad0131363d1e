"""The policy `model`: asks a provider once, and says what came back. It does not do what that asks for (S116)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING

from agents.engine.errors import Cancelled, ProviderError
from agents.engine.ledger import JSON, Ledger, Step, action_error, text
from agents.engine.policy import Action, Policy, records_itself
from agents.engine.projection import ledger_messages
from agents.engine.provider import Answer, Provider, Request, ToolDefinition
from agents.engine.tools import wire_name

if TYPE_CHECKING:
    from agents.engine.runtime import Context

BACKOFF_SECONDS = (1.0, 4.0, 15.0)
"""Waits between the attempts of one round where the provider names none; rising so that a rate limit can pass."""

WAIT_MOST = 60.0
"""Seconds a provider may have us wait between two attempts: whoever is told to come back tomorrow should be told so."""


def model(provider: Provider) -> Policy:
    """The model policy over this provider.

    With `{"round": n}` it asks for the n-th round of the agent that calls it; without, its history is
    `payload["ledger"]` (what it says is also sent as `payload["system"]`) and its tools are `action.actions`.
    """

    @records_itself
    async def ask(action: Action, ctx: Context) -> list[Step]:
        if ctx.turn is None or "round" not in action.payload:
            return await _ask_plainly(provider, action, ctx)
        turn, number = ctx.turn, int(action.payload["round"])
        if (spent := ctx.services.running_seconds()) >= ctx.run.limits.seconds:
            return [action_error("runtime", "timeout", f"Stopped after {spent:.0f} seconds of running, its limit.")]
        round = await turn.prepared(number)
        snapshot = round.snapshot()
        name = hashlib.sha256(snapshot.encode()).hexdigest()
        request = Request(turn.tier, round.system, round.definitions, await turn.history.before(number, provider))
        start = {"snapshot": name, "history": turn.history.reference()}
        answer = await _attempts(provider, request, ctx, start, {name: snapshot})
        return (
            [answer] if isinstance(answer, Step) else [*said(answer, round.tool_named), *round.writes(), ended(answer)]
        )

    return ask


async def _ask_plainly(provider: Provider, action: Action, ctx: Context) -> list[Step]:
    ledger = action.payload.get("ledger", Ledger())
    offered = [r for name in sorted(action.actions) if (r := ctx.run.registry.get(name))]
    tools = tuple(ToolDefinition(wire_name(r.name), r.description, r.schema) for r in offered)
    history = [provider.encode(ledger_messages(ledger))]
    request = Request(action.payload.get("tier", "normal"), action.payload.get("system", ""), tools, history)
    answer = await _attempts(provider, request, ctx, {}, {})
    names = {wire_name(r.name): r.name for r in offered}
    return [answer] if isinstance(answer, Step) else [*said(answer, lambda n: names.get(n, n)), ended(answer)]


async def _attempts(
    provider: Provider, request: Request, ctx: Context, start: dict[str, JSON], snapshots: dict[str, str]
) -> Answer | Step:
    """Ask, and again while it fails in passing; each attempt recorded before it goes out. A Step is the last error."""
    run = ctx.run
    while True:
        run.going_on()
        left = max(1.0, run.limits.seconds - ctx.services.running_seconds())
        attempt = len(run.view.at(ctx.path, "action_start")) + 1
        started = Step(run.worker, "action_start", {"attempt": attempt, "fence": run.fence, **start}, path=ctx.path)
        run.stage(started, snapshots=snapshots)
        await run.flush()
        so_far: list[str] = []
        try:
            return await run.effect(_collect(provider, request, ctx, attempt, so_far), left)
        except Cancelled:
            if so_far and not run.view.result(""):  # a person stopped it, and has read this (R9)
                run.stage(replace(text("model", "".join(so_far), partial=True), path=ctx.path))
            raise
        except TimeoutError:
            return action_error(
                "runtime", "timeout", f"The model had not answered after {left:.0f} seconds, the limit."
            )
        except ProviderError as error:
            failed = len(run.view.at(ctx.path, "action_retry"))
            if not error.retryable or failed + 1 >= run.limits.attempts:
                return action_error("model", error.code, error.message)
            wait = BACKOFF_SECONDS[min(failed, 2)] if error.wait_seconds is None else min(error.wait_seconds, WAIT_MOST)
            retry = {"attempt": attempt, "code": error.code, "message": error.message, "wait_seconds": wait}
            run.stage(Step(run.worker, "action_retry", retry, path=ctx.path))
            await run.flush()
            ctx.services.draft(ctx.path, "", attempt + 1)  # what it had said is no part of what it will say
            await run.effect(asyncio.sleep(wait))


async def _collect(provider: Provider, request: Request, ctx: Context, attempt: int, so_far: list[str]) -> Answer:
    """The whole answer; its text is shown as it comes, and kept in `so_far` for the case that it is stopped.

    Raises ProviderError if the stream ends without an answer.
    """
    async with aclosing(provider.ask(request)) as events:
        async for event in events:
            if isinstance(event, Answer):
                return event
            so_far.append(event.text)
            ctx.services.draft(ctx.path, event.text, attempt)
    raise ProviderError("The stream ended before the answer was whole.", code="stream_broken", retryable=True)


def said(answer: Answer, tool_named: Callable[[str], str]) -> list[Step]:
    """An answer as steps: its text, then the calls it asks for, under the tools' own names (S92)."""
    steps = [text("model", answer.text)] if answer.text else []
    for call in answer.calls:
        payload: dict[str, JSON] = {"policy": tool_named(call.name), "payload": call.arguments}
        if call.call_id:
            payload["call_id"] = call.call_id
        if call.raw is not None:
            payload["raw"] = call.raw
        steps.append(Step("model", "action_call", payload))
    return steps


def ended(answer: Answer) -> Step:
    """The result of a round: what it cost, and the provider's opaque items for the rounds after it."""
    payload: dict[str, JSON] = {"usage": answer.usage, "model": answer.model, "finish": answer.finish}
    if answer.items:
        payload["items"] = list(answer.items)
    return Step("model", "action_result", payload)
