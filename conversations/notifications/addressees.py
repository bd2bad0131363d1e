"""Addressees: who may be sent an e-mail at this moment."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import QuerySet

from conversations.accounts.presence import PRESENT_SECONDS
from conversations.notifications.quiet import in_quiet_hours


def addressees(now: float, but: Collection[int] = ()) -> QuerySet[User]:
    """Return the active users who have an address, have no page of the site open, and may be disturbed.

    Left out is whoever has quiet hours, or was sent an e-mail in the last AGENTSITE_MAIL_EVERY_SECONDS, and those whom
    `but` names by primary key. `now` is the time by the database's clock.
    """
    found = User.objects.filter(is_active=True).exclude(email="").exclude(pk__in=but)
    found = found.exclude(account__looked_at__gt=now - PRESENT_SECONDS)
    found = found.exclude(account__mailed_at__gt=now - settings.AGENTSITE_MAIL_EVERY_SECONDS)
    return found.exclude(in_quiet_hours(datetime.fromtimestamp(now, UTC))).order_by("pk")
