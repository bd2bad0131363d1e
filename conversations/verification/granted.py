"""The rule of grants: what decided without a person covers the call that it decided, as the ledger has both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from agents.engine.actors import Actor, Kind
from agents.engine.decisions import Decision
from agents.engine.grants.grant import Asked, Grant, callers, why_not
from agents.engine.ledger import Step
from agents.engine.paths import parent
from agents.engine.view import View, opens_gate
from conversations.ledger.redacted import MARK

PATIENCE = timedelta(minutes=5)
"""How much later a decision may be recorded than it was made: what delays a record delays it, too."""


def granted(step: Step, before: View) -> Iterator[str]:
    """A grant decides only what it covers, and a person grants only calls like the one that they approve."""
    call, said = before.call(step.path), step.payload
    if step.type != "action_result" or call is None or not opens_gate(call):
        return
    by_grant = Actor.parse(step.actor).kind == Kind.GRANT
    if by_grant != (said.get("via") == Kind.GRANT):
        yield f"{step.path} was decided by {step.actor}, via {said.get('via')}"
    if said.get(MARK) or call.payload.get(MARK):
        return  # what the grant says was removed; the chain vouches for it
    recorded = said.get("grant") if by_grant else said.get("remember")
    if (by_grant or recorded is not None) and said.get("decision") != Decision.APPROVE:
        yield f"{step.path} was decided by {step.actor} as {said.get('decision')!r}: grants only approve"
    if recorded is None and not by_grant:
        return
    if why := _uncovered(recorded, step, call, before):
        yield f"{step.path} and the grant that stands with its decision do not fit: {why}"


def _uncovered(recorded: object, step: Step, call: Step, before: View) -> str | None:
    if not isinstance(recorded, Mapping):
        return "there is none"
    edited: dict[str, Any] = {
        name: step.payload[name] for name in ("input", "digest", "facts") if step.payload.get(name) is not None
    }
    root = before.call("")
    asked = Asked(
        call.payload["payload"] | edited,
        callers(before, parent(step.path)),
        Actor.parse(step.actor).kind == Kind.GRANT and root is not None and root.actor == "system",
        datetime.fromisoformat(step.time) - PATIENCE,
    )
    return why_not(Grant.of(recorded), asked)
