"""Where a person is signed in, and ending it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.utils import timezone

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.contrib.sessions.backends.base import SessionBase


def end_sessions(user: User, but: SessionBase | None = None) -> int:
    """End every session of this person, `but` this one; returns how many. Sockets opened in them close within seconds.

    A session does not say whose it is before it is read, so all that are valid are read: it is done rarely.
    """
    valid = Session.objects.filter(expire_date__gt=timezone.now()).exclude(session_key=but and but.session_key)
    theirs = [row.pk for row in valid.iterator() if row.get_decoded().get(SESSION_KEY) == str(user.pk)]
    Session.objects.filter(pk__in=theirs).delete()
    return len(theirs)


def delete_expired_sessions() -> None:
    """Take away the sessions that have expired: nobody else does."""
    Session.objects.filter(expire_date__lte=timezone.now()).delete()
