"""Sessions: signing a person out everywhere."""

from __future__ import annotations

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.models import Session
from django.utils import timezone


def end_sessions(user: User, but: SessionBase | None = None) -> int:
    """End every session of this user except `but`; return how many. Their sockets close within seconds.

    A session has to be decoded to know its user, so all valid sessions are read. This is done rarely.
    """
    valid = Session.objects.filter(expire_date__gt=timezone.now()).exclude(session_key=but and but.session_key)
    theirs = [row.pk for row in valid.iterator() if row.get_decoded().get(SESSION_KEY) == str(user.pk)]
    Session.objects.filter(pk__in=theirs).delete()
    return len(theirs)
