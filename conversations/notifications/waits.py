"""Waiting turns: whom to notify of which."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery

from agents.engine.execution.gates import ANOTHER
from conversations.accounts.presence import PRESENT_SECONDS
from conversations.database.sql import database_time
from conversations.models import Notice, Output, Prompt, State, Step

BACKEND = "django.contrib.auth.backends.ModelBackend"
AT_ONCE = 500
"""Waits read in one round; the next round reads those that were not notified."""


@dataclass(frozen=True)
class Wait:
    """One pause of a turn, which has been waiting since the step `seq`."""

    prompt: Prompt
    seq: int
    since: datetime


def people_to_notify(but: Collection[int] = ()) -> list[tuple[User, list[Wait]]]:
    """Return whom to notify now, and of which waits: people without a page open, of pauses that are not brand-new.

    `but` names people to leave out for now, by primary key.
    """
    found: dict[User, list[Wait]] = defaultdict(list)
    for person, wait in islice(_unnotified(but), AT_ONCE):
        found[person].append(wait)
    return list(found.items())


def _unnotified(but: Collection[int]) -> Iterator[tuple[User, Wait]]:
    """Yield each wait with a person to notify: its owner, and staff if the owner may not decide all of it."""
    now = database_time()
    waiting = _waiting(datetime.fromtimestamp(now, UTC) - timedelta(seconds=settings.AGENTSITE_MAIL_AFTER_SECONDS))
    deciders = User.objects.with_perm("conversations.decide_own_approval", backend=BACKEND)
    owners = _reachable(deciders, now).exclude(pk__in=but)
    own = waiting.filter(conversation__owner__in=owners.values("pk"))
    own = own.exclude(_notified(OuterRef("conversation__owner")))
    for prompt in own[:AT_ONCE]:
        yield prompt.conversation.owner, _wait(prompt)

    staff = User.objects.with_perm("conversations.decide_approval", backend=BACKEND).filter(is_staff=True)
    four_eyes = Exists(Output.objects.pending().filter(prompt=OuterRef("pk"), who=ANOTHER))
    others = waiting.filter(four_eyes | ~Q(conversation__owner__in=deciders.values("pk")))
    for person in _reachable(staff, now).exclude(pk__in=but):
        for prompt in others.exclude(conversation__owner=person).exclude(_notified(person.pk))[:AT_ONCE]:
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


def _reachable(people: QuerySet[User], now: float) -> QuerySet[User]:
    """Keep those who have an address, want e-mails, and have no page of the site open now."""
    away = people.exclude(email="").exclude(account__mail=False)
    return away.exclude(account__looked_at__gt=now - PRESENT_SECONDS).order_by("pk")
