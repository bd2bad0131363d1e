"""The fold: how a step changes an output of the built-in kinds. It never raises, whatever a ledger holds.

`registry` names the rule of each kind that has its own; `timeline` finds the output that a step affects.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ValidationError

from agents.engine.actors import Actor, Kind
from agents.engine.closing import is_turn_result
from agents.engine.decisions import DECISIONS, Ask, Decision, rule_of
from agents.engine.ledger import JSON, Step
from agents.engine.outputs.change import Change
from agents.engine.outputs.kinds import (
    Approval,
    Deferred,
    Failure,
    Pending,
    ProgressOutput,
    ResultOutput,
    RetryOutput,
    Running,
    Success,
    TextOutput,
    ToolOutput,
    place_of,
)
from agents.engine.paths import HUMAN
from agents.engine.view import asked_for


def call(entry: ToolOutput | None, step: Step) -> ToolOutput | None:
    """Fold a call's entry: opened when the call is asked for, changed by its gates, its start and its result."""
    if entry is None:
        return _opened_entry(step) if _opens_entry(step) else None
    if step.path != entry.path:
        return _fold_gate(entry, step)
    match step.type:
        case "action_start" if step.actor != "system":  # the system's, after a restore, says that it may have begun
            return entry.model_copy(update={"result": Running(), "started_at": entry.started_at or step.time})
        case "action_deferred":
            return entry.model_copy(update={"result": Deferred()})
        case "action_result":
            return _fold_result(entry, step)
    return entry


def text(output: TextOutput | None, step: Step) -> TextOutput:
    """Fold a text: each one is an output of its own, and one by the system is marked as such."""
    return TextOutput.opened_by(step, role_hint="system" if step.actor == "system" else "")


def retry(output: RetryOutput | None, step: Step) -> RetryOutput | None:
    """Fold the result of a round whose answer could not be read; no other step opens such an output."""
    data = step.payload
    if step.type != "action_result" or data.get("code") != "parse_failure":
        return None
    return RetryOutput(raw=str(data.get("raw", "")), message=str(data.get("message", "")), **place_of(step))


def progress(output: ProgressOutput | None, step: Step) -> ProgressOutput:
    """Fold how far a policy is: one output, which keeps its place."""
    said = ProgressOutput.opened_by(step)
    if output is None:
        return said
    return said.model_copy(
        update={"position": output.position, "created_at": output.created_at, "parent": output.parent}
    )


def result(output: ResultOutput | None, step: Step) -> ResultOutput | None:
    """Fold the end of a turn: the value that its policy returns is an output. An agent returns none.

    Only where the site started another policy than its agent: `timeline` asks for no other.
    """
    if step.path or step.type != "action_result" or step.failed or is_turn_result(step) or step.value is None:
        return None
    return ResultOutput(output=step.value, **place_of(step))


def _opens_entry(step: Step) -> bool:
    """Whether a step opens an entry: a call that an answer asks for, a policy's call of a tool, or its question."""
    if step.type != "action_call":
        return False
    if step.payload.get("policy") == HUMAN:
        return True  # a gate below a tool's entry never gets here; one that a model asks for is only a call
    return bool(step.payload.get("tool")) or (step.path != "" and asked_for(step))


def _opened_entry(step: Step) -> ToolOutput:
    data = step.payload
    entry = ToolOutput(
        tool=data.get("policy", ""),
        call_id=data.get("call_id", ""),
        input=data.get("payload", {}),
        raw=data.get("raw"),
        **place_of(step),
    )
    return _ask(entry, step) if entry.tool == HUMAN and not asked_for(step) else entry


def _ask(entry: ToolOutput, step: Step) -> ToolOutput:
    """Fold a gate, a card or a question. A question that is asked again is shown as it is asked now."""
    asked = step.payload.get("payload", {})
    known = {name: asked[name] for name in _ASKED if name in asked}
    if entry.tool == HUMAN and known.setdefault("ask", Ask.QUESTION.value) == Ask.QUESTION:
        known["reason"] = asked.get("question", "")
    before = entry.approval
    if before and before.state == DECISIONS[Decision.EDITED].state:  # then this gate asks about the edited call
        known["proposed"] = before.proposed
    approval = _approval({"path": step.path, "requested_at": step.time, **known})
    changes: dict[str, Any] = {"approval": approval, "result": Pending(reason=approval.reason)}
    if entry.tool == HUMAN:
        changes |= {"input": asked, "ended_at": ""}
    return entry.model_copy(update=changes)


_ASKED = (
    *("ask", "title", "preview", "undoable", "reason", "risk", "digest", "who", "edited_by", "grantable"),
    *("facts", "change", "expires_at"),
)
"""The fields of a gate's own payload that its approval shows."""


def _approval(fields: dict[str, Any]) -> Approval:
    """Return the gate with these fields, or without all that are optional if they are invalid: a fold never raises."""
    try:
        datetime.fromisoformat(fields.get("expires_at") or "2000-01-01")
        return Approval(**fields)
    except (TypeError, ValueError):
        return Approval(path=fields["path"], requested_at=fields["requested_at"])


def _fold_gate(entry: ToolOutput, step: Step) -> ToolOutput:
    if step.type == "action_call":
        return _ask(entry, step)
    if step.type != "action_result" or entry.approval is None:
        return entry
    if entry.tool == HUMAN:
        return _fold_result(entry, step)
    decision = step.payload.get("decision", "")
    changes: dict[str, Any] = {"approval": _decided(entry.approval, step, decision)}
    if not entry.settled:
        changes["result"] = Deferred()  # approved or not, nothing has begun until its start or its result says so
    if decision in (Decision.APPROVE, Decision.EDITED) and step.payload.get("input") is not None:
        changes |= {"input": step.payload["input"], "proposed": entry.proposed or entry.input}
    return entry.model_copy(update=changes)


def _as_decided(approval: Approval, said: dict[str, JSON]) -> Approval:
    """Return what was asked. A question that says no kind was asked as an approval once, without its words."""
    rule = rule_of(str(said.get("decision", "")))
    if rule is None or approval.ask in rule.asks:
        return approval
    return approval.model_copy(update={"ask": Ask.APPROVE.value, "reason": ""})


def _decided(approval: Approval, step: Step, decision: str) -> Approval:
    said, rule = step.payload, rule_of(decision)
    told = {
        "state": rule.state if rule else decision,
        "decided_by": step.actor,
        "decided_at": step.time,
        "via": said.get("via", ""),
        "note": said.get("reason") or said.get("note") or "",
        "facts": said.get("facts", approval.facts),  # an edit has the facts of the edited call
    }
    if "change" in said:  # an edit also has the change that the edited call would make
        told |= {"change": _parse_change(said["change"]), "proposed": approval.proposed or approval.change}
    return approval.model_copy(update=told)


def _parse_change(said: JSON) -> Change | None:
    """Return the change in a decision; None if it is invalid, because a fold never raises."""
    try:
        return Change.model_validate(said)
    except ValidationError:
        return None


def _fold_result(entry: ToolOutput, step: Step) -> ToolOutput:
    data = step.payload
    changes: dict[str, Any] = {"ended_at": step.time}
    if Actor.parse(step.actor).kind == Kind.TOOL and isinstance(began := data.get("began"), str):
        changes["started_at"] = began  # a call that only reads has no other start
    if step.failed:
        error = {"code": str(data.get("code", "failed")), "message": str(data.get("message", ""))}
        changes["result"] = Failure(error=error)
        if entry.approval and entry.approval.state == "pending":  # the end of a call is the end of its gate
            changes["approval"] = entry.approval.model_copy(update={"state": DECISIONS[Decision.CANCELLED].state})
    elif entry.tool == HUMAN and entry.approval:
        changes |= {
            "approval": _decided(_as_decided(entry.approval, data), step, data.get("decision", "")),
            "result": Success(output=data),
        }
    else:
        changes["result"] = Success(output=step.value)
    return entry.model_copy(update=changes)
