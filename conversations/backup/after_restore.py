"""Making a restored site safe: whatever may have happened since the backup was taken counts as unknown.

An approved call that could have started since then gets a start by `system`, as if its worker had crashed. The engine's
own rule applies from there: an idempotent call runs again; for any other call its owner is asked whether it ran. A call
that needs no approval ends: the agent is told, and may ask for it again. Grants are revoked: since then, their people
may have revoked them, and calls may have used them up. Triggers are paused and webhooks switched off: what they started
and told since then is unknown, and the site from which the backup is may still run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import F, Model
from django.utils import timezone

from agents.discovery import installed_tool
from agents.engine.execution.gates import card_of, decision_at, gate_of
from agents.engine.ledger import JSON, Step, action_error
from agents.engine.paths import parent
from agents.engine.view import View, asked_for, opens_gate
from conversations.ledger.locked import LockedTurn, locked_turn
from conversations.ledger.offered import offered_tool
from conversations.models import Delivery, Draft, Drain, Firing, FiringState, Grant, Prompt, Trigger, Webhook, Worker
from conversations.notifications.webhooks.managing import drop_waiting
from conversations.prompts import signals

EPOCH = 1_000_000
"""Added to every fence, so that the fences of workers from after the backup no longer count."""
NOTICE = "Restored from a backup of {time}. What happened after that is unknown here: check before you decide again."
DID_IT_RUN = "The site was restored from a backup of {time}. This could have started after that. Did it run?"
DID_IT_START = "The site was restored from a backup of {time}. It may have started after that: check first."
IT_MAY_BE_TOLD = "The site was restored from a backup of {time}. It may have been sent after that."
NOBODY_KNOWS = "The site was restored from a backup: nobody knows whether it ran. Check before you ask for it again."


@dataclass
class Safe:
    """The number of turns that had not ended, and of calls that may or may not have run."""

    turns: int = 0
    calls: int = 0


def make_safe(time: str) -> Safe:
    """Record a notice in every turn that has not ended, release them all, revoke all grants, pause all triggers,
    and switch off all webhooks.

    `time`: of the backup, for people.
    """
    safe = Safe()
    with transaction.atomic():
        of_the_moment: tuple[type[Model], ...] = (Worker, Drain, Draft, Session)
        for model in of_the_moment:
            model._default_manager.all().delete()
        # Some may have been revoked or used up after the backup: none may let a call run that its person has forbidden.
        Grant.objects.filter(revoked_at=None).update(revoked_at=timezone.now())
        Trigger.objects.filter(paused_at=None).update(paused_at=timezone.now())
        waited = Firing.objects.filter(state=FiringState.QUEUED)
        waited.update(state=FiringState.FAILED, reason=DID_IT_START.format(time=time))
        Webhook.objects.filter(on=True).update(on=False, off_reason=f"Restored from a backup of {time}.")
        drop_waiting(Delivery.objects.all(), IT_MAY_BE_TOLD.format(time=time))
        open_turns = Prompt.objects.filter(ended_at=None)
        for prompt in open_turns.values_list("pk", flat=True):
            with locked_turn(prompt) as turn:
                unknown = [] if turn.view.cancelled() else list(_unknown(turn, DID_IT_RUN.format(time=time)))
                notice = Step("system", "text", {"text": NOTICE.format(time=time), "role_hint": "system"})
                turn.append([*unknown, notice])
            safe.turns += 1
            safe.calls += len(unknown)
        open_turns.filter(fence__gt=0).update(fence=F("fence") + EPOCH)
        open_turns.update(lease_until=0)
        signals.restored.send(None, time=time)
    return safe


def _unknown(turn: LockedTurn, why: str) -> Iterator[Step]:
    """Yield a step for each call that a worker could have started after the backup without asking anybody."""
    view = turn.view
    for call in sorted(_calls(view), key=lambda call: call.id):
        if began := view.at(call.path, "action_start"):
            if _approved_to_run_again(view, call.path):
                yield _start(turn, call.path, began[-1].payload.get("digest", ""), why)
        elif view.call(gate := gate_of(view, call.path)):
            decision = decision_at(view, gate)
            if decision and decision.runs:
                yield _start(turn, call.path, decision.digest, why)
        elif end := _ungated(turn, call):
            yield end


def _calls(view: View) -> Iterable[Step]:
    """Return the open calls of tools: calls below which nothing was called, except for gates."""
    above = {parent(step.path) for step in view.steps if step.type == "action_call" and not opens_gate(step)}
    for call in view.open_calls():
        if (asked_for(call) or call.payload.get("tool")) and call.path and call.path not in above:
            yield call


def _approved_to_run_again(view: View, path: str) -> bool:
    decision = decision_at(view, card_of(view, path))
    return decision is not None and decision.runs


def _ungated(turn: LockedTurn, call: Step) -> Step | None:
    """Return the end of a call without a gate; None if a person will be asked, or if it may safely run again.

    What was declared of the tool stands in the snapshot of its round; where it does not, the installed tool is asked.
    """
    name = call.payload["policy"]
    offered = offered_tool(turn.prompt.conversation_id, turn.prompt.pk, call.path, name)
    tool = offered if offered and offered.title else installed_tool(name)
    if tool and (tool.idempotent or tool.always_asks):
        return None
    return action_error("runtime", "interrupted", NOBODY_KNOWS, path=call.path)


def _start(turn: LockedTurn, path: str, digest: str, why: str) -> Step:
    attempt = len(turn.view.at(path, "action_start")) + 1
    payload: dict[str, JSON] = {"attempt": attempt, "digest": digest, "fence": turn.prompt.fence, "reason": why}
    return Step("system", "action_start", payload, path=path)
