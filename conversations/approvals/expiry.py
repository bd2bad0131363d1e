"""Gates that nobody decided in time. Expiry is a decision like any other: the turn goes on, and says so honestly."""

from __future__ import annotations

import logging

from django.db import OperationalError
from django.db.models.functions import Now

from conversations.approvals.decisions import expire
from conversations.ledger.locked import locked_turn
from conversations.models import GateState, Output, Prompt

logger = logging.getLogger(__name__)

AT_ONCE = 100
"""Gates that one sweep expires at most: the next one follows in seconds."""


def expire_due() -> int:
    """Expire the gates whose time has passed, by the database's clock; returns how many."""
    due = Output.objects.pending().filter(expires_at__lte=Now()).order_by("asked_at")
    return sum(_expire_safely(pk, prompt) for pk, prompt in list(due.values_list("pk", "prompt_id")[:AT_ONCE]))


def _expire_safely(output_id: int, prompt_id: int) -> bool:
    """One gate that cannot be expired must not keep the others, nor the sweep, from their turn."""
    try:
        return _expire(output_id, prompt_id)
    except OperationalError:
        raise  # the database is away: that is not this gate's fault
    except Prompt.DoesNotExist:
        return False  # its conversation was erased meanwhile
    except Exception:
        logger.exception("gate %d cannot be expired", output_id, extra={"prompt": prompt_id})
        return False


def _expire(output_id: int, prompt_id: int) -> bool:
    """Expire one gate, unless somebody decided it meanwhile or its turn was stopped."""
    with locked_turn(prompt_id) as turn:
        output = Output.objects.get(pk=output_id)
        if output.gate != GateState.PENDING or turn.view.cancelled() or turn.prompt.ended:
            return False
        expire(turn, output)
        return True
