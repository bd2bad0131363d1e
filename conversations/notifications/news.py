"""News: what a page that is open in the background shows as notifications of the browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db.models import F, Q
from django.utils import timezone

from conversations.models import Notice, NoticeKind
from conversations.notifications.choices import ways_of
from conversations.notifications.kinds import KINDS
from conversations.notifications.quiet import quiet_hours_of

NEWS_MOST, NEWS_SINCE = 20, timedelta(days=1)
"""How many a page is given, and how old they may be."""


@dataclass(frozen=True)
class NewsItem:
    """One notification: its heading, what it is about, and the page that a click opens."""

    pk: int
    heading: str
    title: str
    link: str


@dataclass(frozen=True)
class News:
    """The news of a person. `waits`: the heading of turns that wait for them; "" if they do not want to be told.

    `quiet`: their quiet hours that hold now or come next, in milliseconds since 1970.
    """

    items: Sequence[NewsItem]
    waits: str
    quiet: tuple[int, int] | None


NOTHING = News((), "", None)
"""Nothing to tell of."""


def news_of(user: User) -> News:
    """Return what the pages of this person tell them of."""
    found = Notice.objects.filter(user=user, page=True, at__gt=timezone.now() - NEWS_SINCE).filter(unseen())
    rows = list(found.select_related("prompt__conversation").order_by("-pk")[:NEWS_MOST])
    waits = KINDS[NoticeKind.WAITS].heading if ways_of(user.pk)[NoticeKind.WAITS].page else ""
    hours = quiet_hours_of(user)
    begin, end = hours.period(timezone.now()) if hours else (None, None)
    return News([_item(row) for row in rows], waits, (_ms(begin), _ms(end)) if begin and end else None)


def unseen() -> Q:
    """Return a condition on notices: their turn's owner has not seen its end on a page since."""
    return Q(prompt=None) | Q(prompt__conversation__seen_seq__lt=F("seq"))


def about(notice: Notice) -> tuple[str, str]:
    """Return what a notice is about, as others wrote it, and the path of its page."""
    if notice.prompt is None:
        return notice.title, notice.link
    return str(notice.prompt.conversation), f"{notice.prompt.conversation.get_absolute_url()}#t-{notice.prompt_id}"


def _item(row: Notice) -> NewsItem:
    title, link = about(row)
    return NewsItem(row.pk, KINDS[NoticeKind(row.kind)].heading, title, link)


def _ms(time: datetime) -> int:
    return int(time.timestamp() * 1000)
