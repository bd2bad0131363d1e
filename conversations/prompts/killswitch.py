"""The kill switch: while it is on, no turn begins or goes on, and what ran is ended (C25).

The row is the truth. A claim asks for it in its own statement, so from its commit on nothing is taken up. What runs
then is stopped by whoever looks first: who turned it on, the drain that holds it, the sweep.
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
from conversations.database.sql import database_time, notify_all
from conversations.ledger import wakeup
from conversations.ledger.claims import is_held
from conversations.ledger.locked import locked_turn
from conversations.models import KillSwitch, Prompt, State, Step
from conversations.prompts.stop import stop

logger = logging.getLogger(__name__)

REASON_MOST = 1_000
"""Characters of a reason."""
SHELL = "system"
"""Who turned it, where that was somebody at the command line."""


class SiteStopped(Exception):
    """The kill switch is on: nothing was taken, and nothing runs. The message says who turned it on, and why."""

    def __init__(self, switch: KillSwitch) -> None:
        why = f"All work is stopped by {person_of(switch.on_by)} ({switch.reason.rstrip('.')})."
        super().__init__(f"{why} This was not taken: send it again when the work goes on.")
        self.switch = switch


def standing() -> KillSwitch | None:
    """The switch while it is on; None while turns may run."""
    return KillSwitch.objects.filter(off_at=None).first()


def refuse_while_on() -> None:
    """Raises SiteStopped while the switch is on."""
    if switch := standing():
        raise SiteStopped(switch)


def turn_on(by: User | None, reason: str) -> KillSwitch:
    """Stop all turns that run; those that queue or wait for a person stay, and go on when it is turned off.

    `by` None: somebody at the command line. Where it is on already, it stays as it was turned on first. Raises
    ValueError without a reason.
    """
    if not (reason := hide(valid_text(reason)).strip()[:REASON_MOST]):
        raise ValueError("Say why: everybody whose work stops reads it.")
    try:
        with transaction.atomic():
            switch = KillSwitch.objects.create(on_by=_actor(by), reason=reason)
            notify_all()
    except IntegrityError:
        switch = KillSwitch.objects.order_by("-id")[0]
    else:
        logger.warning("the kill switch was turned on by %s", switch.on_by)
    enforce()
    return switch


def turn_off(by: User | None) -> bool:
    """Let turns run again; False where it was off."""
    with transaction.atomic():
        lifted = KillSwitch.objects.filter(off_at=None).update(off_by=_actor(by), off_at=timezone.now())
        notify_all()
    if lifted:
        logger.warning("the kill switch was turned off by %s", _actor(by))
        transaction.on_commit(wakeup.wake)
    return bool(lifted)


def enforce() -> int:
    """Stop every turn that a worker took and that is not stopped yet; how many. None while the switch is off."""
    switch = standing()
    if switch is None:
        return 0
    stopped = Step.objects.filter(prompt=OuterRef("pk"), type="cancel")
    running = Prompt.objects.filter(state=State.RUNNING, lease_until__gt=0)
    left = running.exclude(Exists(stopped), lease_until__gt=database_time()).values_list("pk", flat=True)
    return sum(end(prompt, switch) for prompt in list(left))


def person_of(actor: str) -> str:
    """Who turned the switch, in words."""
    pk = Actor.parse(actor).pk
    user = User.objects.filter(pk=pk).first() if pk is not None else None
    return display_name(user) if user else "somebody at the command line"


def end(prompt: int, switch: KillSwitch) -> bool:
    """Record that this turn is stopped, if a worker took it; once more it changes nothing.

    False where that fails: a turn that cannot be stopped must not keep the others running.
    """
    try:
        with locked_turn(prompt) as turn:
            if turn.prompt.state == State.RUNNING and turn.prompt.lease_until:
                stop(turn, switch.on_by, f"Kill switch: {switch.reason}", held=is_held(prompt))
            return True
    except OperationalError:
        raise  # the database is away: that is not this turn's fault
    except Exception:
        logger.exception("a turn cannot be stopped", extra={"prompt": prompt})
        return False


def _actor(by: User | None) -> str:
    return actors.user(by.pk) if by else SHELL
