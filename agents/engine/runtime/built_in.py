"""The policies that every run has, whatever is registered."""

from __future__ import annotations

from datetime import datetime

from agents.engine.decisions import Ask
from agents.engine.errors import Suspended, ToolError
from agents.engine.ledger import Step, action_result
from agents.engine.paths import HUMAN
from agents.engine.runtime.action import Action
from agents.engine.runtime.asking import question_error
from agents.engine.runtime.marks import records_itself
from agents.engine.runtime.policy import Context, Policy
from agents.engine.view import SLEEP, asked_for


@records_itself
async def human(action: Action, ctx: Context) -> list[Step]:
    """The policy `human`: a person decides. Waiting ends this run; the decision is this call's result (S129)."""
    call = ctx.run.view.call(ctx.path)
    if call and asked_for(call):
        raise ToolError("Only policies can ask a person, not a model.", code="not_offered")
    if (ask := action.payload.get("ask", Ask.QUESTION)) not in (Ask.QUESTION, Ask.APPROVE):
        raise ToolError(f"A policy asks people to 'approve' or a 'question', not {ask!r}.", code="invalid_input")
    if ask == Ask.QUESTION and (why := question_error(action.payload)):
        raise ToolError(why, code="invalid_input")
    raise Suspended


@records_itself
async def sleep(action: Action, ctx: Context) -> list[Step]:
    """The policy `sleep`: it waits for a time. Waiting ends this run; the result says that the time has come."""
    call = ctx.run.view.call(ctx.path)
    if call and asked_for(call):
        raise ToolError("Only policies can sleep, not a model.", code="not_offered")
    try:
        over = datetime.fromisoformat(action.payload["until"]) <= ctx.services.now()
    except (KeyError, TypeError, ValueError):
        raise ToolError("A sleep needs the time `until`, in ISO format with its zone.", "invalid_input") from None
    if not over:
        raise Suspended
    return [action_result("runtime")]


BUILT_IN: dict[str, Policy] = {HUMAN: human, SLEEP: sleep}
