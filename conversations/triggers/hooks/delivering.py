"""Delivering: what becomes of a webhook whose sender is known. Each id counts once for its trigger."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from conversations.models import Firing, FiringState, Payload, Trigger
from conversations.triggers.firing import FULL, QUEUED_MOST, enter, locked
from conversations.usage.storage import OverStorage, check

CLOSED = {
    "paused": "A webhook came while the trigger was paused. Its sender was told so.",
    "off": "A webhook came while the trigger was switched off. Its sender was told so.",
}
NO_SPACE = "The files of the trigger's owner take all the space that they may. The sender was told to try again later."
MEDIA_TYPE_MOST = 100


@dataclass(frozen=True)
class Delivered:
    """What became of a webhook. `refused`: "closed", "full" or "no_space", and the firing counts it."""

    firing: Firing
    refused: str = ""


def deliver(pk: int, webhook_id: str, media_type: str, content: bytes) -> Delivered:
    """Enter a webhook in the history with its payload, and start its turn if none is before it.

    The same id again returns what became of the first. A trigger that is paused or switched off, or for which too many
    wait, or whose owner has no space left, refuses it: the history has one line for all that were refused in a row.
    Raises Trigger.DoesNotExist.
    """
    with transaction.atomic():
        trigger = locked(pk)
        if trigger is None:
            raise Trigger.DoesNotExist
        if webhook_id and (earlier := trigger.firings.filter(webhook_id=webhook_id).first()):
            return Delivered(earlier)
        if closed := CLOSED.get(trigger.state):
            return Delivered(_counted(trigger, closed), "closed")
        if trigger.firings.filter(state=FiringState.QUEUED).count() >= QUEUED_MOST:
            return Delivered(_counted(trigger, f"{FULL} The sender was told to try again later."), "full")
        payload = Payload(media_type=media_type[:MEDIA_TYPE_MOST], content=content, size=len(content))
        try:
            check(trigger.owner_id, payload.size)
        except OverStorage:
            return Delivered(_counted(trigger, NO_SPACE), "no_space")
        return Delivered(enter(trigger, Firing(trigger=trigger, webhook_id=webhook_id), payload))


def _counted(trigger: Trigger, why: str) -> Firing:
    """Return the line of the history for webhooks that are refused for this reason: the last line, if it is one."""
    last = trigger.firings.order_by("-pk").first()
    if last is None or (last.state, last.reason) != (FiringState.SKIPPED, why):
        return trigger.firings.create(state=FiringState.SKIPPED, reason=why)
    last.times += 1
    last.save(update_fields=["times"])
    return last
