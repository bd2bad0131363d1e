"""Events to tell people of: turns that ended while nobody watched, and whatever else calls `notify`."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, OuterRef, Subquery

from conversations.accounts.presence import PRESENT_SECONDS
from conversations.models import ConversationKind, Notice, NoticeKind, Prompt, State, Step
from conversations.notifications.choices import ways_of

AT_ONCE = 200
"""Turns looked at in one round; the next round follows in seconds."""
KIND_OF = {State.COMPLETED: NoticeKind.ENDED, State.FAILED: NoticeKind.FAILED}
"""What the end of a turn is; of one that was stopped, nobody has to be told."""


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


def notify_ended() -> int:
    """Record whom to tell of the turns that have ended since the last call; return how many turns were looked at.

    Each turn's own row says whether this was done, so that none is left out, or told of twice, whatever is killed.
    """
    ended = list(_unannounced()[:AT_ONCE])
    telling = [prompt for prompt in ended if _is_news(prompt)]
    for prompt in telling:
        with transaction.atomic():
            if Prompt.objects.filter(pk=prompt.pk, announced=False).update(announced=True):
                notify(prompt.conversation.owner, KIND_OF[State(prompt.state)], prompt=prompt, seq=prompt.last)
    others = [prompt.pk for prompt in ended if prompt not in telling]
    if others:
        Prompt.objects.filter(pk__in=others).update(announced=True)
    return len(ended)


def _unannounced() -> Any:
    """Return the turns that have ended and were not looked at yet: each with its `last` step, and when its owner
    `looked_at` a page of the site.
    """
    steps = Step.objects.filter(conversation=OuterRef("conversation"), prompt=OuterRef("pk")).order_by("-seq")
    ended = Prompt.objects.filter(announced=False, ended_at__isnull=False).select_related("conversation__owner")
    looked_at = F("conversation__owner__account__looked_at")
    return ended.annotate(last=Subquery(steps.values("seq")[:1]), looked_at=looked_at).order_by("ended_at", "pk")


def _is_news(prompt: Any) -> bool:
    """Whether its owner is to be told of its end: it was neither stopped nor hidden, and they had no page in view."""
    if prompt.state not in KIND_OF or not prompt.visible or prompt.conversation.kind == ConversationKind.HIDDEN:
        return False
    ended: float = prompt.ended_at.timestamp()
    return bool((prompt.looked_at or 0) <= ended - PRESENT_SECONDS)
