"""Whether a call may start now, whatever was decided: never twice by itself, never late, never without permission."""

from __future__ import annotations

from agents.engine.closing import HAD_BEGUN
from agents.engine.decisions import Ask, rule_of
from agents.engine.errors import Suspended, ToolError
from agents.engine.execution.gates import (
    GateDecision,
    approved_details,
    card_digest,
    card_of,
    decision_at,
    gate_call,
    gate_of,
    question,
)
from agents.engine.grants.grant import Asked, callers
from agents.engine.ledger import JSON, Step
from agents.engine.runtime.policy import Context, Runtime
from agents.engine.tools.tool import Tool
from agents.engine.view import View

WAS_CUT_OFF = "This was started, and the worker stopped before its result was recorded."
"""Why a card asks what became of a call."""

LEFT_ALONE = "left_alone"
"""The code of the note about a call that keeps running after its time limit."""


async def check_interrupted(tool: Tool, payload: dict[str, JSON], ctx: Context) -> None:
    """Raise ToolError for a call that began, must not run again by itself, and was not told to.

    Raises Suspended while the owner has not said what became of it. If nobody is there to ask, or it could not run
    again whatever they said, nobody is asked and the model is told.
    """
    run = ctx.run
    starts = run.view.at(ctx.path, "action_start")
    if not starts or tool.idempotent:
        return
    card = card_of(run.view, ctx.path)
    named = card_digest(starts[-1].payload.get("digest", ""), len(starts))
    decision = decision_at(run.view, card)
    if decision is None:
        late = _abandoned_message(run.view, starts[-1])
        if run.services.unattended:
            raise interrupted_error(f"{late} Nobody knows whether it ran: check before you ask for it again.".strip())
        if not run.view.call(card):
            await check_start(tool, ctx.path, "", ctx)
            # A start has a reason if the call may not even have begun: the site was restored since.
            reason = starts[-1].payload.get("reason") or f"{late or WAS_CUT_OFF} Did it run?"
            shown = {k: v for k, v in approved_details(run.view, gate_of(run.view, ctx.path)).items() if k == "change"}
            asked = question(Ask.INTERRUPTED, tool, payload, run, reason=reason, named=named, shown=shown)
            run.stage(gate_call(card, asked))
        raise Suspended
    if not decision.runs or decision.digest != named:
        raise card_error(decision, "The tool changed meanwhile.")


def abandoned_note(path: str, limit: float) -> Step:
    """Return the note that the call at `path` did not end within its limit, and that nothing waits for it."""
    message = f"It did not end within {limit:g} seconds, its limit, and may still be running."
    return Step("runtime", "note", {"code": LEFT_ALONE, "message": message}, path=path)


def _abandoned_message(view: View, start: Step) -> str:
    """Return the message of the note that this attempt was abandoned; "" if it was not."""
    notes = (note for note in view.at(start.path, "note") if note.id > start.id)
    return next((note.payload.get("message", "") for note in notes if note.payload["code"] == LEFT_ALONE), "")


def card_error(decision: GateDecision, not_again: str) -> ToolError:
    """Return the error of an interrupted call as its owner decided: `it_ran`, `it_did_not`, or else `interrupted`.

    `not_again` says why it does not run again.
    """
    if decision.runs:
        return interrupted_error(not_again)
    rule = rule_of(decision.decision)
    if rule and rule.people:
        return ToolError(rule.told, decision.decision)
    return interrupted_error("Nobody knows whether it ran: check before you ask for it again.")


def interrupted_error(message: str) -> ToolError:
    """Return the error of a call that began and has no recorded end."""
    return ToolError(message, "interrupted")


async def check_start(tool: Tool, path: str, by: str, ctx: Context) -> None:
    """Raise ToolError if the call at `path` may not start now, as approved by `by`.

    It may not if the agent's running time is up, or if the owner or whoever approved it has lost the permission (C13).
    `by` is "" before anybody was asked, because nobody should be asked about a call that may not start anyway.
    """
    run = ctx.run
    if (limit := ctx.clock.expired()) is not None:
        why = f"Not started after {limit:g} seconds of running, the limit of the turn."
        raise not_started_error(run.view, path, "timeout", why)
    if denied := await run.gatekeeper.holds(tool, by, _approved(run, path) if by else None):
        raise not_started_error(run.view, path, "not_permitted", denied)


def asked_about(question: dict[str, JSON], path: str, run: Runtime) -> Asked:
    """Return what a gatekeeper is told of the call at `path`, about which this question is asked."""
    return Asked(question, callers(run.view, path), run.services.unattended, run.services.now())


def _approved(run: Runtime, path: str) -> Asked:
    """Return what was approved at the gate of the call at `path`."""
    gate = run.view.call(gate_of(run.view, path))
    return asked_about(gate.payload["payload"] if gate else {}, path, run)


def not_started_error(view: View, path: str, code: str, why: str) -> ToolError:
    """Return the error of a call that does not start now; if it began before, the error says so."""
    return ToolError(f"{why} {HAD_BEGUN}" if view.at(path, "action_start") else why, code)


def approved_by(ctx: Context) -> str:
    """Return the actor who approved the call, at its gate or at the card that runs it again; "" if nobody had to."""
    view = ctx.run.view
    decision = decision_at(view, card_of(view, ctx.path)) or decision_at(view, gate_of(view, ctx.path))
    return decision.by if decision else ""
