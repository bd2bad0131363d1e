"""Attempts: retry a provider on transient errors, then ask the fallback model. Every attempt is recorded."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import replace

from agents.engine.errors import Cancelled, ProviderError
from agents.engine.interfaces.provider import Answer, Provider, Request
from agents.engine.ledger import JSON, Step, action_error, text
from agents.engine.runtime.policy import Context

BACKOFF_SECONDS = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""The waits between attempts if the provider names none; they increase, so that a rate limit can pass.

One minute together: a model server may be restarted, on a busy machine, without any turn failing.
"""

WAIT_MOST = 60.0
"""The longest wait between two attempts, in seconds. If a provider asks for more, people are told at once."""

FALLBACK = "fallback"
"""The tier of the fallback model, and the code of the note that it was asked."""

OWN_ATTEMPTS = 5
"""How often the turn's own model is tried at most, if there is a fallback model to ask after that: 15 s of waiting."""

EMPTY = "empty_answer"
"""The code of an answer without text or calls: its model is asked once more, but not again and again."""


async def ask_until_answered(
    provider: Provider,
    request: Request,
    ctx: Context,
    *,
    start: dict[str, JSON],
    snapshots: dict[str, str],
) -> Answer | list[Step]:
    """Ask, and retry on transient errors. Each attempt is recorded before it is sent.

    Returns steps if there is no answer: the text so far if the time ran out, and the last error. `start`: recorded with
    each attempt, next to how long the turn had run, because an agent's running time counts from its first attempt.
    """
    run = ctx.run
    while True:
        run.raise_if_stopped()
        if (limit := ctx.clock.expired()) is not None:
            return [action_error("runtime", "timeout", timeout_message(limit))]
        attempt = len(run.view.at(ctx.path, "action_start")) + 1
        if attempt == 1 and run.rounds_left(ctx.path) <= 0:  # again: others may have been asked since it was prepared
            return [action_error("runtime", "max_rounds", rounds_message(run.granted.rounds))]
        asked = replace(request, tier=FALLBACK) if fallback_note(ctx) else request
        ran = round(ctx.services.running_seconds(), 3)
        begun = {"attempt": attempt, "fence": run.fence, "tier": asked.tier, "ran": ran, **start}
        run.stage(Step(run.worker, "action_start", begun, path=ctx.path), snapshots=snapshots)
        await run.flush()
        so_far: list[str] = []
        try:
            return await run.effect(_collect(provider, asked, ctx, attempt, so_far), ctx.clock.left())
        except Cancelled:
            if not run.view.result(""):  # a person stopped it, and has read this text (R9)
                run.stage(*(replace(said, path=ctx.path) for said in _partial_text(so_far)))
            raise
        except TimeoutError:
            return [*_partial_text(so_far), action_error("runtime", "timeout", timeout_message(ctx.clock.limit()))]
        except ProviderError as error:
            steps = _after_failure(error, asked.tier, attempt, ctx)
            if steps[-1].type == "action_result":
                return steps
            run.stage(*steps)
            await run.flush()
            ctx.services.draft(ctx.path, "", attempt + 1)  # the text so far is not part of the next attempt
            await run.effect(asyncio.sleep(steps[0].payload["wait_seconds"]))


def _final_error(error: ProviderError, wait: float, limit: float | None) -> Step:
    """Return the error of a question that is not retried; `limit` is the running time that would expire before."""
    if wait > WAIT_MOST:
        why = f"The model server asks to wait {wait:.0f} seconds, so it was not asked again: try again after that."
        return action_error("model", error.code, f"{error.message} {why}", wait_seconds=wait)
    if limit is None:
        return action_error("model", error.code, error.message)
    why = f"Stopped, because the limit of {limit:g} seconds of running ends before the model may be asked again."
    return action_error("runtime", "timeout", f"{why} Its last error: {error.message}")


def rounds_message(limit: int) -> str:
    """Return the message for a question that is not asked, because the rounds of the turn are used up."""
    return f"Not asked: the {limit} rounds of this turn are used up."


def timeout_message(limit: float) -> str:
    """Return the message for an agent whose running time is up."""
    return f"Stopped after {limit:g} seconds of running, its limit."


def _partial_text(so_far: list[str]) -> list[Step]:
    """Return the partial text of an answer, which somebody may have read, as a step; none if it is blank."""
    words = "".join(so_far)
    return [text("model", words, partial=True)] if words.strip() else []


def fallback_note(ctx: Context) -> Step | None:
    """Return the note that this question went to the fallback model; None while the turn's own model is asked.

    Also None if the site no longer has a fallback model: then the turn's own model is asked again.
    """
    if not ctx.run.limits.fallback:
        return None
    notes = ctx.run.view.at(ctx.path, "note")
    return next((note for note in notes if note.payload.get("code") == FALLBACK), None)


def _after_failure(error: ProviderError, tier: str, attempt: int, ctx: Context) -> list[Step]:
    """Return what is recorded before the next attempt; if there is none, only the error.

    The fallback model is asked if it has a good chance to answer: the turn's own model had too many transient errors,
    wants too long a wait, or was cut off before it said anything. It is not asked about a conversation that is too
    long, because it would be sent the same one; nor after a refusal, because that concerns the request, the key or the
    settings, which both models share, and somebody should hear of it.
    """
    limits, since = ctx.run.limits, fallback_note(ctx)
    failed = [
        step.payload for step in ctx.run.view.at(ctx.path, "action_retry") if step.id > (since.id if since else 0)
    ]
    retry: dict[str, JSON] = {"attempt": attempt, "code": error.code, "message": error.message}
    own = limits.fallback and not since
    left = (min(OWN_ATTEMPTS, limits.attempts) if own else limits.attempts) - len(failed) - 1
    twice_empty = error.code == EMPTY and any(each["code"] == EMPTY for each in failed)
    again = error.retryable and left > 0 and not twice_empty
    backoff = BACKOFF_SECONDS[min(len(failed), len(BACKOFF_SECONDS) - 1)]
    wait = backoff if error.wait_seconds is None else error.wait_seconds
    time = ctx.clock.left()
    if again and wait <= WAIT_MOST and wait < time:
        return [Step(ctx.run.worker, "action_retry", {**retry, "wait_seconds": wait}, path=ctx.path)]
    if since or time <= 0 or not limits.fallback or not (error.retryable or error.code == "incomplete"):
        return [_final_error(error, wait, ctx.clock.limit() if again and wait >= time else None)]
    message = f"The model of tier {tier!r} did not answer ({error.code}), so the fallback model is asked."
    return [
        Step(ctx.run.worker, "action_retry", {**retry, "wait_seconds": 0.0}, path=ctx.path),
        Step("runtime", "note", {"code": FALLBACK, "message": message}, path=ctx.path),
    ]


async def _collect(provider: Provider, request: Request, ctx: Context, attempt: int, so_far: list[str]) -> Answer:
    """Return the complete answer. Its text is shown as it arrives, and collected in `so_far` in case it is stopped.

    Raises ProviderError if the stream ends without an answer.
    """
    async with aclosing(provider.ask(request)) as events:
        async for event in events:
            if isinstance(event, Answer):
                return event
            so_far.append(event.text)
            ctx.services.draft(ctx.path, event.text, attempt)
    raise ProviderError("The stream ended before the answer was complete.", code="stream_broken", retryable=True)
