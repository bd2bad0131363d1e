"""The end of a turn from outside: by a person's hand, or by the kill switch."""

from __future__ import annotations

from agents.engine.closing import close_turn
from agents.engine.ledger import Step
from conversations.ledger.locked import LockedTurn
from conversations.models import State

STOPPED = "Stopped before it was done."


def stop(turn: LockedTurn, actor: str, reason: str, *, held: bool) -> None:
    """Record that the turn is stopped. Where no worker holds it, it ends at once; else the worker ends what runs first.

    Nothing changes of a turn that has ended.
    """
    if turn.prompt.ended:
        return
    if not turn.view.cancelled():
        turn.append([Step(actor, "cancel", {"reason": reason})])
    if not held:
        turn.append(close_turn(turn.view, State.CANCELLED, "cancelled", STOPPED))
