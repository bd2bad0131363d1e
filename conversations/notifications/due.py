"""What is due: whom to send an e-mail now, and what it is to list."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice

from django.contrib.auth.models import User

from conversations.database.sql import database_time
from conversations.models import Notice
from conversations.notifications.addressees import addressees
from conversations.notifications.waits import Wait, unnotified

AT_ONCE = 500
"""Waits and notices read in one round; the next round reads those that were not sent."""
SINCE = timedelta(days=7)
"""How old what has happened may be: somebody whose address is entered later is not told of all that was before."""


@dataclass
class Due:
    """What one person is to be told of: turns that wait for them, and notices of what has happened."""

    waits: list[Wait] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)


def due(but: Collection[int] = ()) -> list[tuple[User, Due]]:
    """Return whom to send an e-mail now, and of what. `but` names people to leave out for now, by primary key."""
    found: dict[User, Due] = defaultdict(Due)
    now = database_time()
    people = addressees(now, but)
    for person, wait in islice(unnotified(people, now), AT_ONCE):
        found[person].waits.append(wait)
    unsent = Notice.objects.filter(mail=True, mailed_at=None, user__in=people.order_by().values("pk"))
    unsent = unsent.filter(at__gt=datetime.fromtimestamp(now, UTC) - SINCE)
    for notice in unsent.select_related("user").order_by("pk")[:AT_ONCE]:
        found[notice.user].notices.append(notice)
    return list(found.items())
