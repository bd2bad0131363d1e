"""Waking turns that sleep, once the time has come. By the database's clock."""

from __future__ import annotations

import logging
import math
from datetime import UTC, datetime

from django.db import OperationalError, transaction
from django.db.models import Min
from django.db.models.functions import Now

from agents.engine.deciding import wake_steps
from agents.engine.view import until
from conversations.database.busy import brief_waits, is_locked
from conversations.database.crashpoints import crashpoint
from conversations.database.sql import database_time
from conversations.ledger import wakeup
from conversations.ledger.locked import locked_turn
from conversations.models import KillSwitch, Prompt, State
from conversations.models.prompt import PromptQuerySet

logger = logging.getLogger(__name__)

ASLEEP = (State.SLEEPING, State.WAITING)
"""The states in which a turn may have to be woken: it may wait for people besides."""
AT_ONCE = 100
"""Turns that one sweep wakes at most. The next sweep follows within seconds."""


def wake_due() -> int:
    """Wake the turns whose time has come, unless the kill switch is on; return how many.

    One that still waits for people goes on when they have decided.
    """
    due = _asleep().filter(wake_at__lte=Now()).order_by("wake_at", "pk").values_list("pk", flat=True)[:AT_ONCE]
    return sum(map(_wake, list(due)))


def next_wake() -> float:
    """Return the seconds until the first of them is due, below 0 if it is overdue; infinite if none sleeps."""
    first = _asleep().aggregate(first=Min("wake_at"))["first"]
    return math.inf if first is None else first.timestamp() - database_time()


def _asleep() -> PromptQuerySet:
    if KillSwitch.objects.filter(off_at=None).exists():
        return Prompt.objects.none()
    return Prompt.objects.filter(wake_at__isnull=False, state__in=ASLEEP)


def _wake(prompt_id: int) -> bool:
    """Wake one turn whose row says that its time has come, unless somebody was faster or it was stopped.

    If that fails, it is logged: it must hold up neither the other turns nor the sweep.
    """
    try:
        with brief_waits(), locked_turn(prompt_id) as turn:
            asleep, row = turn.view.open_sleeps(), turn.prompt
            if row.state not in ASLEEP or row.wake_at is None or not asleep or turn.view.cancelled():
                return False
            now = datetime.fromtimestamp(database_time(), UTC)
            if row.wake_at > now:  # somebody was faster, and this is the next of its sleeps
                return False
            steps = wake_steps(turn.view, max(now, until(asleep[0])))
            turn.append(steps)
            crashpoint("before_wake_up")
            transaction.on_commit(wakeup.wake)
            return bool(steps)
    except OperationalError as error:
        if not is_locked(error):
            raise  # the database is unavailable: not this turn's fault
        logger.warning("a turn is locked by another process; it is woken later", extra={"prompt": prompt_id})
        return False
    except Prompt.DoesNotExist:
        return False  # its conversation was erased meanwhile
    except Exception:
        logger.exception("a turn could not be woken", extra={"prompt": prompt_id})
        return False
