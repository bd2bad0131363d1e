"""Whether a call may start now, whatever was decided: not twice by itself, not too late, not for who lost the right."""

from __future__ import annotations

from agents.engine import paths
from agents.engine.closing import HAD_BEGUN
from agents.engine.decisions import rule_of
from agents.engine.errors import Suspended
from agents.engine.execution.gates import (
    GateDecision,
    approved_details,
    card_digest,
    card_payload,
    decision_at,
    expiry_time,
    gate_call,
)
from agents.engine.ledger import JSON, Step, action_error
from agents.engine.runtime.policy import Context
from agents.engine.tools.tool import Tool
from agents.engine.view import View

LEFT_ALONE = "left_alone"
"""The code of the note about a call that goes on after its time."""


async def interrupted_result(tool: Tool, payload: dict[str, JSON], ctx: Context) -> Step | None:
    """The result of a call that began, cannot run again by itself, and was not told to; None if it may begin now.

    Raises Suspended while the owner has not said what became of it; where nobody is there, or it could not run again
    whatever they said, nobody is asked and the model is told.
    """
    run = ctx.run
    starts = run.view.at(ctx.path, "action_start")
    if not starts or tool.idempotent:
        return None
    card = paths.card(ctx.path, len(starts))
    named = card_digest(starts[-1].payload.get("digest", ""), len(starts))
    decision = decision_at(run.view, card)
    if decision is None:
        late = _abandoned_message(run.view, starts[-1])
        if run.services.unattended:
            return interrupted_error(f"{late} Nobody knows whether it ran: check before you ask for it again.".strip())
        if not run.view.call(card):
            if answered := await start_error(tool, ctx.path, "", ctx):
                return answered
            change = approved_details(run.view, paths.gate(ctx.path)).get("change")
            until = expiry_time(run.services, tool.approval_hours or run.limits.approval_hours)
            asked = card_payload(tool, payload, named, change, until)
            if why := starts[-1].payload.get("reason"):  # it only may have begun: the site was restored since
                asked["reason"] = why
            elif late:
                asked["reason"] = f"{late} Did it run?"
            run.stage(gate_call(card, asked))
        raise Suspended
    if decision.runs and decision.digest == named:
        return None
    return card_result(decision, "The tool changed meanwhile.")


def abandoned_note(path: str, limit: float) -> Step:
    """The note that the call at `path`, which began, goes on after its limit, and that nothing waits for it."""
    message = f"It did not end within {limit:g} seconds, its limit, and may still be running."
    return Step("runtime", "note", {"code": LEFT_ALONE, "message": message}, path=path)


def _abandoned_message(view: View, start: Step) -> str:
    """What is noted of the attempt that began there, where nothing waits for it any longer; else ""."""
    notes = (note for note in view.at(start.path, "note") if note.id > start.id)
    return next((note.payload.get("message", "") for note in notes if note.payload["code"] == LEFT_ALONE), "")


def card_result(decision: GateDecision, not_again: str) -> Step:
    """The result of an interrupted call by what its owner said of it; `not_again` is why it does not run again."""
    if decision.runs:
        return interrupted_error(not_again)
    rule = rule_of(decision.decision)
    return interrupted_error(
        rule.told if rule and rule.people else "Nobody answered whether it ran: check before you ask."
    )


def interrupted_error(message: str) -> Step:
    """The result of a call that began, and whose end nobody saw."""
    return action_error("runtime", "interrupted", message)


async def start_error(tool: Tool, path: str, by: str, ctx: Context) -> Step | None:
    """The result of the call at `path` where it may not start by the word of `by`; None where it may.

    The agent's running time is up, or whoever it would be done for, or by, lost the right to it meanwhile (C13).
    `by` is "" before anybody is asked: nobody is about what may not start anyway.
    """
    run = ctx.run
    if ctx.turn and (limit := ctx.clock.expired()) is not None:
        code, why = "timeout", f"Not started after {limit:g} seconds of running, its limit."
    elif denied := await run.gatekeeper.holds(tool, by):
        code, why = "not_permitted", denied
    else:
        return None
    return not_started_error(run.view, path, code, why)


def not_started_error(view: View, path: str, code: str, why: str) -> Step:
    """The error of a call that does not start now; of one that began before, it says so."""
    return action_error("runtime", code, f"{why} {HAD_BEGUN}" if view.at(path, "action_start") else why)


def approved_by(ctx: Context) -> str:
    """The actor whose word lets the call start: of its gate, or of the card that runs it again; "" where nobody's."""
    view = ctx.run.view
    card = decision_at(view, paths.card(ctx.path, len(view.at(ctx.path, "action_start"))))
    decision = card or decision_at(view, paths.gate(ctx.path))
    return decision.by if decision else ""
