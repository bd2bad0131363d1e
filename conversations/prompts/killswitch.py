"""The kill switch: while it is on, no turn starts or continues, and running turns are stopped (C25).

The row is the truth. Claims check it in their own statement, so nothing is claimed once it is committed. Turns that are
running by then are stopped by whoever gets there first: the request that turned it on, the drain that holds the turn,
or the sweep.
"""

from __future__ import annotations

import logging

from django.contrib.auth.models import User
from django.db import IntegrityError, OperationalError, transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from agents.engine import actors
from agents.engine.actors import Actor
from agents.engine.ledger import valid_text
from agents.engine.secrets import hide
from conversations.accounts.names import display_name
from conversations.database.busy import brief_waits, is_locked
from conversations.database.hints import hint_everything
from conversations.database.sql import database_time
from conversations.ledger import wakeup
from conversations.ledger.claims import any_held, claimed
from conversations.ledger.locked import locked_turn
from conversations.models import KillSwitch, Prompt, State, Step

logger = logging.getLogger(__name__)

REASON_MOST = 1_000
"""Maximum length of a reason, in characters."""
SHELL = "system"
"""The actor of a switch that was used from the command line."""


class SiteStopped(Exception):
    """The kill switch is on, so the request was refused. The message says who turned it on, and why."""

    def __init__(self, switch: KillSwitch) -> None:
        why = f"All work was stopped by {actor_name(switch.on_by)} ({switch.reason.rstrip('.')})."
        super().__init__(f"{why} Nothing was sent: try again when work resumes.")


def active_switch() -> KillSwitch | None:
    """Return the switch while it is on; None while turns may run."""
    return KillSwitch.objects.filter(off_at=None).first()


def refuse_while_on() -> None:
    """Raise SiteStopped while the switch is on."""
    if switch := active_switch():
        raise SiteStopped(switch)


def turn_on(by: User | None, reason: str) -> KillSwitch:
    """Stop all running turns. Those that are queued or wait for a person stay, and go on when it is turned off.

    `by` None: somebody at the command line. If it is on already, the first person and reason stay. Raises ValueError
    without a reason.
    """
    if not (reason := hide(valid_text(reason)).strip()[:REASON_MOST]):
        raise ValueError("Say why: everybody whose work is stopped will read it.")
    try:
        with transaction.atomic():
            switch = KillSwitch.objects.create(on_by=_actor(by), reason=reason)
            hint_everything()
    except IntegrityError:
        switch = KillSwitch.objects.order_by("-id")[0]
    else:
        logger.warning("the kill switch was turned on by %s", switch.on_by)
    enforce()
    return switch


def turn_off(by: User | None) -> bool:
    """Let turns run again. Return False if the switch was off already."""
    with transaction.atomic():
        lifted = KillSwitch.objects.filter(off_at=None).update(off_by=_actor(by), off_at=timezone.now())
        hint_everything()
    if lifted:
        logger.warning("the kill switch was turned off by %s", _actor(by))
        transaction.on_commit(wakeup.wake)
    return bool(lifted)


def enforce() -> int:
    """Stop every turn that a worker has claimed and that is not stopped yet; return how many. Only while it is on.

    One whose conversation is locked is left to the next who looks: it must not keep the others running.
    """
    switch = active_switch()
    if switch is None:
        return 0
    stopped = Step.objects.filter(conversation=OuterRef("conversation"), prompt=OuterRef("pk"), type="cancel")
    running = claimed().filter(state=State.RUNNING)
    left = running.exclude(Exists(stopped), lease_until__gt=database_time()).values_list("pk", flat=True)
    return sum(_end_unless_locked(prompt, switch) for prompt in list(left))


def _end_unless_locked(prompt: int, switch: KillSwitch) -> bool:
    try:
        return end(prompt, switch)
    except OperationalError as error:
        if not is_locked(error):
            raise  # the database is unavailable: that is not this turn's fault
        logger.warning("a turn is locked by another process; it is stopped later", extra={"prompt": prompt})
        return False


def actor_name(actor: str) -> str:
    """Return the name of the person who used the switch."""
    pk = Actor.parse(actor).pk
    user = User.objects.filter(pk=pk).first() if pk is not None else None
    return display_name(user) if user else "somebody at the command line"


def end(prompt: int, switch: KillSwitch) -> bool:
    """Record that this turn is stopped, if a worker has claimed it. Repeating it changes nothing.

    Returns False if that fails: a turn that cannot be stopped must not keep the others running. What the database says
    of itself is raised, and soon if the turn is locked.
    """
    try:
        with brief_waits(), locked_turn(prompt) as turn:
            if turn.prompt.state == State.RUNNING and turn.prompt.lease_until:
                turn.stop(
                    switch.on_by, f"Kill switch: {switch.reason}", held=any_held(Prompt.objects.filter(pk=prompt))
                )
            return True
    except OperationalError:
        raise
    except Exception:
        logger.exception("a turn could not be stopped", extra={"prompt": prompt})
        return False


def _actor(by: User | None) -> str:
    return actors.user(by.pk) if by else SHELL
