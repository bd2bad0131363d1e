"""Waiting turns: whom to send an e-mail about which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from agents.engine.execution.gates import ANOTHER
from conversations.models import Notice, NoticeKind, Origin, Output, Prompt, State, Step
from conversations.notifications.choices import wants_mail

BACKEND = "django.contrib.auth.backends.ModelBackend"
AT_ONCE = 500
"""Waits of one person read in one round; the next round reads those that were not notified."""


@dataclass(frozen=True)
class Wait:
    """One pause of a turn, which has been waiting since the step `seq`."""

    prompt: Prompt
    seq: int
    since: datetime


def unnotified(people: QuerySet[User], now: float) -> Iterator[tuple[User, Wait]]:
    """Yield each wait with a person among these to notify of it, at most AT_ONCE of each person's.

    That is its owner, and who decides for others, if the owner may not decide all. A pause must have lasted for
    AGENTSITE_MAIL_AFTER_SECONDS. Where a trigger started the turn and it has waited for
    AGENTSITE_UNATTENDED_AFTER_SECONDS, those are told besides who have the permission `told_of_unattended` by name.
    `now` is the time by the database's clock.
    """
    people, time = people.filter(wants_mail(NoticeKind.WAITS)), datetime.fromtimestamp(now, UTC)
    waiting = _waiting(time - timedelta(seconds=settings.AGENTSITE_MAIL_AFTER_SECONDS))
    deciders = User.objects.with_perm("conversations.decide_own_approval", backend=BACKEND)
    owners = people.filter(pk__in=deciders.values("pk")).order_by()
    own = waiting.filter(conversation__owner__in=owners.values("pk"))
    own = own.exclude(_notified(OuterRef("conversation__owner")))
    for prompt in own[:AT_ONCE]:
        yield prompt.conversation.owner, _wait(prompt)

    elsewhere = User.objects.with_perm("conversations.decide_approval", backend=BACKEND)
    four_eyes = Exists(Output.objects.pending().filter(prompt=OuterRef("pk"), who=ANOTHER))
    others = waiting.filter(four_eyes | ~Q(conversation__owner__in=deciders.values("pk")))
    may_decide = people.filter(pk__in=elsewhere.values("pk"))
    yield from _of_others(may_decide, others)

    long_ago = time - timedelta(seconds=settings.AGENTSITE_UNATTENDED_AFTER_SECONDS)
    named = User.objects.with_perm("conversations.told_of_unattended", include_superusers=False, backend=BACKEND)
    unattended = waiting.filter(origin=Origin.TRIGGER, since__lte=long_ago).exclude(pk__in=others.values("pk"))
    yield from _of_others(may_decide.filter(pk__in=named.values("pk")), unattended)


def _of_others(people: QuerySet[User], waiting: QuerySet[Any]) -> Iterator[tuple[User, Wait]]:
    """Yield each of these waits with each of these people who was not notified of it; nobody's own."""
    for person in people:
        for prompt in waiting.exclude(conversation__owner=person).exclude(_notified(person.pk))[:AT_ONCE]:
            yield person, _wait(prompt)


def _waiting(before: datetime) -> QuerySet[Any]:
    """Return the turns that have been waiting since before then, each with the step that paused it last."""
    pauses = Step.objects.filter(conversation=OuterRef("conversation"), prompt=OuterRef("pk"), type="pause")
    paused, since = (Subquery(pauses.order_by("-seq").values(field)[:1]) for field in ("seq", "time"))
    waiting = Prompt.objects.filter(state=State.WAITING).annotate(paused=paused, since=since).filter(since__lte=before)
    return waiting.select_related("conversation__owner").order_by("pk")


def _notified(person: Any) -> Exists:
    """Whether this person was notified of a pause of `_waiting`."""
    return Exists(Notice.objects.filter(user=person, prompt=OuterRef("pk"), seq=OuterRef("paused")))


def _wait(prompt: Any) -> Wait:
    return Wait(prompt, prompt.paused, prompt.since)
