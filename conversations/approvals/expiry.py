"""Expiry of gates that nobody decided in time. It is a decision like any other: the turn resumes, and says so."""

from __future__ import annotations

import logging

from django.db import OperationalError
from django.db.models.functions import Now

from conversations.approvals.decisions import expire
from conversations.ledger.locked import locked_turn
from conversations.models import GateState, Output, Prompt
from conversations.models.prompt import OPEN

logger = logging.getLogger(__name__)

AT_ONCE = 100
"""Gates that one sweep expires at most. The next sweep follows within seconds."""


def expire_due() -> int:
    """Expire the gates whose time has passed, by the database's clock; return how many.

    Those that a turn left open at its end cannot be, and must not stand before the others for ever.
    """
    due = Output.objects.pending().filter(expires_at__lte=Now(), prompt__state__in=OPEN).order_by("asked_at")
    return sum(_expire(pk, prompt) for pk, prompt in list(due.values_list("pk", "prompt_id")[:AT_ONCE]))


def _expire(output_id: int, prompt_id: int) -> bool:
    """Expire one gate, unless somebody decided it meanwhile or its turn was stopped.

    If that fails, it is logged: it must hold up neither the other gates nor the sweep.
    """
    try:
        with locked_turn(prompt_id) as turn:
            output = Output.objects.get(pk=output_id)
            if output.gate != GateState.PENDING or turn.view.cancelled() or turn.prompt.ended:
                return False
            expire(turn, output)
            return True
    except OperationalError:
        raise  # the database is unavailable: not this gate's fault
    except Prompt.DoesNotExist:
        return False  # its conversation was erased meanwhile
    except Exception:
        logger.exception("gate %d could not be expired", output_id, extra={"prompt": prompt_id})
        return False
