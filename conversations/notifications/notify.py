"""Notify: recording that a person is to be told of something, in the ways that they chose."""

from __future__ import annotations

from django.contrib.auth.models import User

from conversations.models import Notice, NoticeKind, Prompt
from conversations.notifications.choices import ways_of


def notify(
    person: User, kind: NoticeKind, *, prompt: Prompt | None = None, seq: int = 0, title: str = "", link: str = ""
) -> None:
    """Record, in the open transaction if there is one, that a person is to be told of something.

    They are told in the ways that they have chosen for this kind; if there are none, nothing is recorded. It is about
    the turn `prompt`, which ended with the step `seq`, or about whatever has this `title` and its page at the path
    `link`, such as "/account/".
    """
    ways = ways_of(person.pk)[kind]
    if ways.page or ways.mail:
        Notice.objects.create(
            user=person,
            kind=kind,
            prompt=prompt,
            seq=seq,
            title=title[:200],
            link=link,
            page=ways.page,
            mail=ways.mail,
        )
