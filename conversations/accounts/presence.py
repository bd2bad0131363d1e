"""Presence: which users have a page open. They are not e-mailed that a turn is waiting."""

from __future__ import annotations

from conversations.database.sql import database_time
from conversations.models import Account

PRESENT_SECONDS = 30.0
"""A visible page reports every 10 s; after three missed reports, its user counts as away."""


def record_presence(user_id: int) -> None:
    """Record that this user has a page in view now, by the database's clock."""
    now = database_time()
    if not Account.objects.filter(user_id=user_id).update(looked_at=now):
        Account.objects.update_or_create(user_id=user_id, defaults={"looked_at": now})


def was_ever_present(user_id: int) -> bool:
    """Whether a page of this user ever reported that it was in view. Without JavaScript, none can."""
    return Account.objects.filter(user_id=user_id, looked_at__gt=0).exists()
