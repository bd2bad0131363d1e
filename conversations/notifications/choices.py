"""Choices: how each person wants to be told of each kind of thing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import time

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from conversations.models import Account, Notice, NoticeChoice, NoticeKind
from conversations.notifications.kinds import KINDS, Ways


def ways_of(user_id: int) -> dict[NoticeKind, Ways]:
    """Return how this person wants to be told of each kind."""
    chosen = {row.kind: Ways(row.page, row.mail, row.hook) for row in NoticeChoice.objects.filter(user=user_id)}
    return {kind: chosen.get(kind.value, rule.default) for kind, rule in KINDS.items()}


def choose(user: User, ways: Mapping[NoticeKind, Ways], quiet: tuple[time, time] | None) -> None:
    """Set how this person is told of each of these kinds, and their quiet hours, if any.

    What they do not want any more is not sent by e-mail either if it is still to be sent. Nothing is stored if they
    were deactivated meanwhile: they may have been erased.
    """
    start, end = quiet or (None, None)
    with transaction.atomic():
        if not User.objects.select_for_update(no_key=True).get(pk=user.pk).is_active:
            return
        for kind, chosen in ways.items():
            values = {"page": chosen.page, "mail": chosen.mail, "hook": chosen.hook}
            NoticeChoice.objects.update_or_create(user=user, kind=kind, defaults=values)
            told = Notice.objects.filter(user=user, kind=kind)
            if not chosen.page:
                told.filter(page=True).update(page=False)
            if not chosen.mail:
                told.filter(mail=True, mailed_at=None).update(mail=False)
        Account.objects.update_or_create(user=user, defaults={"quiet_from": start, "quiet_to": end})


def wants_mail(kind: NoticeKind) -> Q:
    """Return a condition on users: they want to be told of this kind by e-mail."""
    others = NoticeChoice.objects.filter(user=OuterRef("pk"), kind=kind, mail=not KINDS[kind].default.mail)
    return ~Q(Exists(others)) if KINDS[kind].default.mail else Q(Exists(others))
