"""Events: turns that ended, of which people are told if nobody watched, and webhooks always."""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models import F, OuterRef, Subquery

from conversations.accounts.presence import PRESENT_SECONDS
from conversations.models import ConversationKind, Prompt, State, Step
from conversations.notifications.kinds import KIND_OF
from conversations.notifications.notify import notify
from conversations.notifications.webhooks.telling import standing, tell_of_end

AT_ONCE = 200
"""Turns looked at in one round; the next round follows in seconds."""


def notify_ended() -> int:
    """Record whom to tell of the turns that have ended since the last call, and which webhooks; return how many turns
    were looked at.

    Each turn's own row says whether this was done, so that none is left out, or told of twice, whatever is killed.
    """
    ended = list(_unannounced()[:AT_ONCE])
    webhooks = standing() if ended else []
    telling = [prompt for prompt in ended if _is_news(prompt)]
    for prompt in telling:
        with transaction.atomic():
            if Prompt.objects.filter(pk=prompt.pk, announced=False).update(announced=True):
                notify(prompt.conversation.owner, KIND_OF[State(prompt.state)], prompt=prompt, seq=prompt.last)
                tell_of_end(prompt, webhooks)
    others = [prompt for prompt in ended if prompt not in telling]
    if others:
        with transaction.atomic():
            Prompt.objects.filter(pk__in=[prompt.pk for prompt in others]).update(announced=True)
            for prompt in others:
                tell_of_end(prompt, webhooks)
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
