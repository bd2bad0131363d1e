"""The list of conversations beside every page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby

from django.contrib.auth.models import User
from django.db.models import Count
from django.utils import timezone
from django.utils.formats import date_format

from conversations.models import Conversation, Output, State

LIST_MOST = 60
"""Conversations in the list; older ones are found by searching."""


@dataclass(frozen=True)
class Row:
    """A conversation in the list: how many actions of it wait, and whether it works or failed."""

    conversation: Conversation
    waiting: int
    state: str

    @property
    def working(self) -> bool:
        """Whether its turn runs."""
        return self.state in (State.QUEUED, State.RUNNING)

    @property
    def time(self) -> str:
        """When something was last said: the time today, else the date."""
        local = timezone.localtime(self.conversation.updated_at)
        return date_format(local, "H:i" if local.date() == timezone.localdate() else "j M")


@dataclass(frozen=True)
class Group:
    """Conversations under one heading."""

    title: str
    rows: list[Row]


@dataclass(frozen=True)
class Sidebar:
    """The list, as one person sees it. `query` is what was searched for; `more` says that not all are here."""

    groups: list[Group]
    query: str
    more: bool


def sidebar(user: User, query: str = "") -> Sidebar:
    """The conversations of this user, those that wait for a person first, then the newest."""
    found = Conversation.objects.visible_to(user).select_related("active_prompt").order_by("-updated_at")
    if query:
        found = found.filter(title__icontains=query)
    newest = list(found[: LIST_MOST + 1])
    waiting = _waiting(newest)
    rows = [Row(c, waiting.get(c.pk, 0), _state(c)) for c in newest[:LIST_MOST]]
    wait = [row for row in rows if row.state == State.WAITING]
    rest = [row for row in rows if row.state != State.WAITING]
    theirs = user.is_staff and user.has_perm("conversations.decide_own_approval")
    title = "Waiting for you" if theirs else "Waiting for approval"
    groups = [Group(title, wait)] if wait else []
    return Sidebar([*groups, *_by_day(rest)], query, len(newest) > LIST_MOST)


def _state(conversation: Conversation) -> str:
    active = conversation.active_prompt
    return active.state if active else ""


def _waiting(conversations: Iterable[Conversation]) -> dict[int, int]:
    ids = [c.pk for c in conversations if _state(c) == State.WAITING]
    if not ids:
        return {}
    counted = Output.objects.pending().filter(conversation__in=ids).values("conversation").annotate(n=Count("pk"))
    return {row["conversation"]: row["n"] for row in counted.order_by()}


def _by_day(rows: Iterable[Row]) -> list[Group]:
    return [Group(title, list(group)) for title, group in groupby(rows, _day)]


def _day(row: Row) -> str:
    day, today = timezone.localtime(row.conversation.updated_at).date(), timezone.localdate()
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    return "This week" if day > today - timedelta(days=7) else "Earlier"
