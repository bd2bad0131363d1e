"""Deciding a gate: one function for the admin, the chat and the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.auth import get_user_model
from django.db import transaction

from agents.engine.ledger import JSON, Step
from conversations import wakeup
from conversations.approvals.permissions import may_decide
from conversations.ledger import Turn, locked_turn
from conversations.models import Gate, Output, State

if TYPE_CHECKING:
    from django.contrib.auth.models import User

DECISIONS = {"approve": ("approve", "reject"), "interrupted": ("it_ran", "it_did_not", "run_again")}
"""What can be decided, by what is asked."""


class DecisionRefused(Exception):
    """A decision that changes nothing. `code` is for programs; the message says what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Conflict(DecisionRefused):
    """The gate is not as it was shown: decided by another, closed, or asked anew. `output` is its present state."""

    def __init__(self, code: str, message: str, output: Output) -> None:
        super().__init__(code, message)
        self.output = output


def decide(output_id: int, by: User, decision: str, *, digest: str, via: str, reason: str = "") -> Output:
    """Decide the gate of this output as `decision`; the turn goes on when no gate of it is left.

    `digest` is that of the call as it was shown: another one is refused, nothing is decided. `via`: page, admin or api.
    The same decision again by the same person returns the first result. Raises ObjectDoesNotExist (nobody was
    asked, or the conversation was erased), Conflict, DecisionRefused (`forbidden`, `unknown_decision`).
    """
    prompt_id = Output.objects.gates().values_list("prompt_id", flat=True).get(pk=output_id)
    with locked_turn(prompt_id) as turn:
        output = Output.objects.select_related("conversation").get(pk=output_id)
        if not may_decide(_as_of_now(by), output):
            raise DecisionRefused("forbidden", "You may not decide this: ask somebody with the permission.")
        if output.gate != Gate.PENDING:
            return _decided_already(output, turn, by, decision)
        if turn.view.cancelled() or turn.prompt.ended:
            raise Conflict("cancelled", "Nothing was changed: the turn was stopped.", output)
        if decision not in DECISIONS.get(output.ask, ()):
            answers = ", ".join(DECISIONS.get(output.ask, ())) or "none"
            raise DecisionRefused("unknown_decision", f"{decision!r} is no answer to this. There are: {answers}.")
        if digest != output.digest:
            raise Conflict("changed", "This is not what you were shown: look at it again.", output)
        settle(turn, _decision(output, by, decision, via, reason))
    output.refresh_from_db()
    return output


def settle(turn: Turn, decision: Step) -> None:
    """Record a decision; where it was the last that the turn waits for, the turn goes on."""
    turn.append([decision])
    if turn.prompt.state == State.WAITING and not turn.view.open_gates():
        turn.append([_resume(turn)])
    transaction.on_commit(wakeup.wake)


def _as_of_now(user: User) -> User:
    """The person as the database has them: a session or a socket may know them from before they were deactivated."""
    return get_user_model().objects.get(pk=user.pk)


def _decided_already(output: Output, turn: Turn, by: User, decision: str) -> Output:
    result = turn.view.result(output.gate_path)
    if result and result.actor == f"user:{by.pk}" and result.payload.get("decision") == decision:
        return output
    raise Conflict(output.gate, f"Nothing was changed: it is {output.get_gate_display().lower()} already.", output)


def _decision(output: Output, by: User, decision: str, via: str, reason: str) -> Step:
    payload: dict[str, JSON] = {"decision": decision, "digest": output.digest, "via": via}
    if reason := reason.strip():
        payload["reason"] = reason
    return Step(f"user:{by.pk}", "action_result", payload, path=output.gate_path)


def _resume(turn: Turn) -> Step:
    pauses = turn.view.at("", "pause")
    left: Any = pauses[-1].payload.get("steps_remaining", 0) if pauses else 0
    return Step("runtime", "resume", {"resumed_reason": "all_actions_resolved", "steps_remaining": left})
