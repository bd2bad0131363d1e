"""Who looks at a page of the site now: whoever does is not told by e-mail that a turn waits."""

from __future__ import annotations

from conversations.database.sql import database_time
from conversations.models import Account

PRESENT_SECONDS = 30.0
"""A page in view says so every 10 s; after three that were not heard nobody looks any more."""


def record_presence(user_id: int) -> None:
    """A page of this person is in view now, by the database's clock."""
    now = database_time()
    if not Account.objects.filter(user_id=user_id).update(looked_at=now):
        Account.objects.update_or_create(user_id=user_id, defaults={"looked_at": now})


def is_present(user_id: int, within_seconds: float = PRESENT_SECONDS) -> bool:
    """Whether a page of this person was in view within these seconds."""
    return Account.objects.filter(user_id=user_id, looked_at__gt=database_time() - within_seconds).exists()


def was_ever_present(user_id: int) -> bool:
    """Whether a page of this person ever said that it is in view: without JavaScript none can."""
    return Account.objects.filter(user_id=user_id, looked_at__gt=0).exists()
