"""Stopping a turn from outside: by a person, or by the kill switch."""

from __future__ import annotations

from agents.engine.closing import close_turn
from agents.engine.ledger import Step
from conversations.ledger.locked import LockedTurn
from conversations.models import State

STOPPED = "Stopped before it was done."


def stop(turn: LockedTurn, actor: str, reason: str, *, held: bool) -> None:
    """Record that the turn is stopped. If no worker holds it, it ends at once; else the worker first ends its calls.

    A turn that has ended does not change.
    """
    if turn.prompt.ended:
        return
    if not turn.view.cancelled():
        turn.append([Step(actor, "cancel", {"reason": reason})])
    if not held:
        turn.append(close_turn(turn.view, State.CANCELLED, "cancelled", STOPPED))
