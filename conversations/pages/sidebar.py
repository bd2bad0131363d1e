"""The sidebar: the list of conversations next to every page."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple

from django.contrib.auth.models import User
from django.db.models import Case, Count, Max, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Left
from django.utils import timezone
from django.utils.formats import date_format

from agents.engine.execution.gates import ANOTHER
from conversations.accounts.presence import was_ever_present
from conversations.approvals.permissions import DECIDE_OWN, count_waiting, decides
from conversations.display.faithful import first_line
from conversations.display.search import search
from conversations.models import Conversation, ConversationKind, Output, Prompt, State, Step
from conversations.models.prompt import CLAIMABLE
from conversations.notifications.news import NOTHING, News, news_of
from conversations.pages.versions import version

LIST_MOST = 60
"""Conversations in the list; older ones are found by searching."""
LINE_MOST = 120
"""Characters of what a run was given."""


class Waits(NamedTuple):
    """How many actions of a conversation wait for the reader, and when the newest was asked: later ones are news.

    `newest`: when it was asked, in milliseconds. The newest request may be in an old output.
    `others`: all actions that wait are for somebody else to approve; they are no news to the reader.
    """

    number: int = 0
    newest: int = 0
    others: bool = False


@dataclass(frozen=True)
class SidebarRow:
    """A conversation in the list: how many actions wait, and whether it is working or has failed.

    `state` is the state of the turn that has not ended; "" if there is none, or if it is hidden and asks nothing.
    `unread`: the last turn ended, or began to wait, since its owner last looked. `failed`: the last turn failed, and
    nobody has gone on from there, asked again, said something else or archived the conversation since. `quote`: the
    text in which a search found a match, if it is not in the title, or what a run was given.
    """

    conversation: Conversation
    waits: Waits
    state: str
    unread: bool = False
    failed: bool = False
    quote: str = ""

    @property
    def shown(self) -> tuple[object, ...]:
        """Everything that the row shows."""
        of_conversation = self.conversation.pk, str(self.conversation), self.conversation.archived_at is None
        return *of_conversation, self.waits, self.state, self.time, self.unread, self.failed, self.quote

    @property
    def since(self) -> datetime:
        """The time the list is sorted by: the last message or, while a turn has not ended, the start of that turn."""
        active = self.conversation.active_prompt
        return active.created_at if active and self.state else self.conversation.updated_at

    @property
    def working(self) -> bool:
        """Whether its turn is running."""
        return self.state in CLAIMABLE

    @property
    def time(self) -> str:
        """The time of the last message: the time of day if it was today, otherwise the date."""
        local = timezone.localtime(self.since)
        return date_format(local, "H:i" if local.date() == timezone.localdate() else "j M")


@dataclass(frozen=True)
class Group:
    """Conversations under one heading."""

    title: str
    rows: list[SidebarRow]


@dataclass(frozen=True)
class Sidebar:
    """The sidebar as one user sees it. `query` is the search text; `more`: not all conversations are listed.

    `archived`: this is the list of archived conversations; `away` counts these. `runs`: this is the list of runs, which
    are in no other list unless they wait; `ran`: there are some. `waiting` counts the actions in this
    user's conversations that wait for them. `approvals` counts all that waits for them, see count_waiting; None for
    people who may decide nothing. `news`: what the browser tells them of.
    """

    groups: list[Group]
    query: str
    more: bool
    archived: bool = False
    away: int = 0
    approvals: int | None = None
    waiting: int = 0
    runs: bool = False
    ran: bool = False
    news: News = NOTHING

    @property
    def version(self) -> str:
        """The version of the list."""
        groups = [(group.title, [row.shown for row in group.rows]) for group in self.groups]
        return version(groups, self.more, self.away, self.ran)

    @property
    def news_version(self) -> str:
        """The version of the news."""
        return version(self.news)

    @property
    def stays(self) -> bool:
        """Whether the list is left as it is while pushes arrive: a search, the archive, or the runs."""
        return bool(self.query) or self.archived or self.runs


def sidebar(user: User, query: str = "", *, archived: bool = False, runs: bool = False) -> Sidebar:
    """Return the sidebar of this user: first what waits for them, then what waits for somebody else, then the newest.

    An archived conversation is included if a search found it, if it is waiting, or if `archived` asks for the archive.
    A run is included if it is waiting, or if `runs` asks for the runs, among which is then searched.
    """
    mine = Conversation.objects.visible_to(user)
    listed = mine.filter(kind=ConversationKind.RUN if runs else ConversationKind.CHAT)
    quotes = search(listed, query, LIST_MOST + 1) if query else {}
    wanted = _filter(query, quotes, archived=archived, runs=runs)
    newest = list(_with_last_turn(mine, wanted)[: LIST_MOST + 1])
    open_turns = mine.filter(active_prompt__isnull=False)
    if not (query or archived or runs):  # apart: one query for both would read all runs
        waiting = _with_last_turn(open_turns, Q(active_prompt__state=State.WAITING))[: LIST_MOST + 1]
        both = {each.pk: each for each in (*newest, *waiting)}.values()
        newest = sorted(both, key=lambda each: each.updated_at, reverse=True)[: LIST_MOST + 1]
    waits, looks = _count_waiting(user, newest), _reports_presence(user, newest)
    rows = [_row(c, waits.get(c.pk, Waits()), looks=looks, quote=quotes.get(c.pk, "")) for c in newest[:LIST_MOST]]
    rows.sort(key=lambda row: row.since, reverse=True)
    wait = [row for row in rows if row.state == State.WAITING]
    rest = [row for row in rows if row.state != State.WAITING]
    yours = Group("Waiting for you", [row for row in wait if not row.waits.others])
    others = Group("Waiting for someone else", [row for row in wait if row.waits.others])
    days = [Group(title, list(group)) for title, group in groupby(rest, _day)]
    pending = Output.objects.pending().order_by()
    theirs = pending.filter(prompt__in=open_turns.values("active_prompt"))
    return Sidebar(
        [*(group for group in (yours, others) if group.rows), *days],
        query,
        len(newest) > LIST_MOST,
        archived and not query,
        mine.filter(kind=ConversationKind.CHAT, archived_at__isnull=False).count(),
        count_waiting(user) if decides(user) else None,
        theirs.exclude(who=ANOTHER).count() if user.has_perm(DECIDE_OWN) else 0,
        runs and not query,
        mine.filter(kind=ConversationKind.RUN).exists(),
        news_of(user),
    )


def _filter(query: str, found: Collection[int], *, archived: bool, runs: bool) -> Q:
    if query:
        return Q(pk__in=found)
    if runs:
        return Q(kind=ConversationKind.RUN)
    return Q(kind=ConversationKind.CHAT, archived_at__isnull=not archived)


def _with_last_turn(conversations: QuerySet[Conversation], wanted: Q) -> QuerySet[Conversation]:
    """Return these, newest first, with the state of the last visible turn and the seq of that turn's last step.

    `line`: of a run, how the line begins that would start it; the titles of all runs of a workflow are the same.
    """
    last = Prompt.objects.filter(conversation=OuterRef("pk"), visible=True).order_by("-number")
    line = Case(When(kind=ConversationKind.RUN, then=Subquery(last.values(line=Left("input", LINE_MOST))[:1])))
    steps = Step.objects.filter(conversation=OuterRef("pk"), prompt=OuterRef("last_prompt")).order_by("-seq")
    found = conversations.filter(wanted).select_related("active_prompt").order_by("-updated_at")
    found = found.annotate(last_prompt=Subquery(last.values("pk")[:1]), last_state=Subquery(last.values("state")[:1]))
    return found.annotate(last_seq=Subquery(steps.values("seq")[:1]), line=line)


def _reports_presence(user: User, conversations: Iterable[Conversation]) -> bool:
    """Whether this user's pages report what was seen. If none ever did, nothing is marked as unread."""
    return any(_has_news(c) for c in conversations) and was_ever_present(user.pk)


def _has_news(conversation: Any) -> bool:
    """Whether the last turn ended or began to wait since its owner saw it. Whoever stopped a turn knows that."""
    left = conversation.last_state in (State.WAITING, State.COMPLETED, State.FAILED)
    return left and (conversation.last_seq or 0) > conversation.seen_seq


def _row(conversation: Any, waits: Waits, *, looks: bool, quote: str) -> SidebarRow:
    active = conversation.active_prompt
    shown = active and (active.visible or active.state == State.WAITING)
    state, unread = active.state if shown else "", looks and _has_news(conversation)
    failed = conversation.last_state == State.FAILED and conversation.archived_at is None
    given = first_line((conversation.line or "").partition(" ")[2])
    return SidebarRow(conversation, waits, state, unread, failed, quote or given)


def _count_waiting(user: User, conversations: Iterable[Conversation]) -> dict[int, Waits]:
    """Count the waiting actions of each. With four eyes the owner may reject, but somebody else must approve."""
    ids = [c.pk for c in conversations if c.active_prompt and c.active_prompt.state == State.WAITING]
    if not ids:
        return {}
    pending = Output.objects.pending().filter(conversation__in=ids).order_by()
    own = ~Q(who=ANOTHER)
    counted = pending.values("conversation").annotate(
        n=Count("pk"), own=Count("pk", filter=own), newest=Max("asked_at", filter=own)
    )
    may = user.has_perm(DECIDE_OWN)
    return {
        row["conversation"]: Waits(row["own"], _ms(row["newest"]))
        if may and row["own"]
        else Waits(row["n"], others=True)
        for row in counted
    }


def _ms(time: datetime) -> int:
    return int(time.timestamp() * 1000)


def _day(row: SidebarRow) -> str:
    day, today = timezone.localtime(row.since).date(), timezone.localdate()
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    return "This week" if day > today - timedelta(days=7) else "Earlier"
