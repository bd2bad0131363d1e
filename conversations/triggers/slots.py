"""Slots: the times at which a trigger is due, by the clock of the database, which all hosts share."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

from django.conf import settings

from conversations.database.sql import database_time
from conversations.models import Trigger


def now() -> datetime:
    """Return the time by the database's clock."""
    return datetime.fromtimestamp(database_time(), UTC)


def place(trigger: Trigger, after: datetime) -> None:
    """Work out when the trigger is due next after this moment, and never again at a time at which it was due before.

    One that webhooks fire is never due.
    """
    if trigger.hook:
        return
    fired = set(trigger.firings.filter(slot__gt=after).values_list("slot", flat=True))  # if the clock was set back
    times = trigger.schedule.next_times(after, len(fired) + 1)
    trigger.slot = trigger.next_at = next((time for time in times if time not in fired), None)
    if trigger.slot and trigger.schedule.repeats:
        trigger.next_at = trigger.slot + _spread(trigger)


def _spread(trigger: Trigger) -> timedelta:
    """Return how long after it is due a trigger fires: always the same for one, and spread over all that there are."""
    if not (most := settings.AGENTSITE_TRIGGER_SPREAD_SECONDS):
        return timedelta()
    digest = hashlib.sha256(str(trigger.pk).encode()).digest()
    return timedelta(seconds=int.from_bytes(digest[:4]) % most)
