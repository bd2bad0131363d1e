"""The list of conversations beside every page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby

from django.contrib.auth.models import User
from django.db.models import Count, Max
from django.utils import timezone
from django.utils.formats import date_format

from conversations.approvals.permissions import shown_to
from conversations.models import Conversation, Output, State
from conversations.pages.versions import version

LIST_MOST = 60
"""Conversations in the list; older ones are found by searching."""
COUNT_MOST = 100
"""Approvals are counted so far; "99+" says that there are more."""


@dataclass(frozen=True)
class Row:
    """A conversation in the list: how many actions of it wait, and whether it works or failed."""

    conversation: Conversation
    waiting: int
    state: str
    asks: int = 0  # the newest output that waits: a later one is news

    @property
    def since(self) -> datetime:
        """What it is ordered by: when something was last said, and while its turn is not done, when that began."""
        active = self.conversation.active_prompt
        return active.created_at if active else self.conversation.updated_at

    @property
    def working(self) -> bool:
        """Whether its turn runs."""
        return self.state in (State.QUEUED, State.RUNNING)

    @property
    def time(self) -> str:
        """When something was last said: the time today, else the date."""
        local = timezone.localtime(self.since)
        return date_format(local, "H:i" if local.date() == timezone.localdate() else "j M")


@dataclass(frozen=True)
class Group:
    """Conversations under one heading."""

    title: str
    rows: list[Row]


@dataclass(frozen=True)
class Sidebar:
    """The list, as one person sees it. `query` is what was searched for; `more` says that not all are here.

    `waiting` counts the actions that wait in this person's conversations, `approvals` those that the admin shows to
    staff, up to COUNT_MOST; None for others.
    """

    groups: list[Group]
    query: str
    more: bool
    approvals: int | None = None
    waiting: int = 0

    @property
    def version(self) -> str:
        """That of the list."""
        rows = [
            (row.conversation.pk, str(row.conversation), row.waiting, row.asks, row.state, row.time)
            for row in self.rows
        ]
        return version([(group.title, len(group.rows)) for group in self.groups], rows, self.more)

    @property
    def rows(self) -> list[Row]:
        """All of them."""
        return [row for group in self.groups for row in group.rows]


def sidebar(user: User, query: str = "") -> Sidebar:
    """The conversations of this user, those that wait for a person first, then the newest."""
    found = Conversation.objects.visible_to(user).select_related("active_prompt").order_by("-updated_at")
    if query:
        found = found.filter(title__icontains=query)
    newest = list(found[: LIST_MOST + 1])
    waiting = _waiting(newest)
    rows = [_row(c, *waiting.get(c.pk, (0, 0))) for c in newest[:LIST_MOST]]
    rows.sort(key=lambda row: row.since, reverse=True)
    wait = [row for row in rows if row.state == State.WAITING]
    rest = [row for row in rows if row.state != State.WAITING]
    title = "Waiting for you" if user.has_perm("conversations.decide_own_approval") else "Waiting for approval"
    groups = [Group(title, wait), *_by_day(rest)] if wait else _by_day(rest)
    pending = Output.objects.pending()
    return Sidebar(
        groups,
        query,
        len(newest) > LIST_MOST,
        shown_to(user, pending)[:COUNT_MOST].count() if user.is_staff else None,
        pending.filter(conversation__owner=user).count(),
    )


def _state(conversation: Conversation) -> str:
    active = conversation.active_prompt
    return active.state if active else ""


def _row(conversation: Conversation, waiting: int, asks: int) -> Row:
    return Row(conversation, waiting, _state(conversation), asks)


def _waiting(conversations: Iterable[Conversation]) -> dict[int, tuple[int, int]]:
    """How many actions of each wait, and the newest of them."""
    ids = [c.pk for c in conversations if _state(c) == State.WAITING]
    if not ids:
        return {}
    pending = Output.objects.pending().filter(conversation__in=ids).order_by()
    counted = pending.values("conversation").annotate(n=Count("pk"), newest=Max("pk"))
    return {row["conversation"]: (row["n"], row["newest"]) for row in counted}


def _by_day(rows: Iterable[Row]) -> list[Group]:
    return [Group(title, list(group)) for title, group in groupby(rows, _day)]


def _day(row: Row) -> str:
    day, today = timezone.localtime(row.since).date(), timezone.localdate()
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    return "This week" if day > today - timedelta(days=7) else "Earlier"
