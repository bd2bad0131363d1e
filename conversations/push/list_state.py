"""What no step says and open pages show all the same: read so that it can be compared, as a hint of it may be lost."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.db.models import Aggregate, OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Coalesce, Concat

from conversations.approvals.permissions import OTHERS
from conversations.database.disk import is_short
from conversations.models import Conversation, Output, Redaction
from conversations.prompts.killswitch import active_switch

Notices = tuple[int, bool]
"""What all must know of the site: by which row the kill switch is on, 0 for off, and whether the disk is full."""
LISTED = ("title", "archived_at", "redaction")


class ListedConversation(NamedTuple):
    """How a conversation stands: its title, when it was put away, and the id of its last redaction, 0 without one."""

    title: str
    archived_at: datetime | None
    redaction: int


def listed(conversations: QuerySet[Conversation]) -> QuerySet[Conversation, Any]:
    """These, with what LISTED names. Redactions of one conversation have ids in order: each is made under its lock."""
    last = Redaction.objects.filter(conversation=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    return conversations.annotate(redaction=Coalesce(Subquery(last), 0))


def listed_now(conversation: int) -> ListedConversation | None:
    """How it stands now; None where it is gone."""
    row = listed(Conversation.objects.filter(pk=conversation)).values_list(*LISTED).first()
    return row and ListedConversation(*row)


class _Digest(Aggregate):
    """One short text for those of many rows. In whatever order: where it is another, one look is made for nothing."""

    function = "string_agg"
    template = "md5(%(function)s(%(expressions)s, ' '))"
    output_field = TextField()

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> tuple[str, Any]:
        """The same by SQLite's name."""
        return self.as_sql(compiler, connection, function="group_concat", **more)


def owned_by(people: Collection[int]) -> dict[int, str]:
    """By person who has any: how all of their conversations stand, recorded or not. One query for any number."""
    columns = ("pk", "seq", "seen_seq", "archived_at", "title")
    texts = [text for name in columns for text in (name, Value(" "))]
    rows = Conversation.objects.filter(owner__in=people).order_by().values("owner")
    found = rows.annotate(stand=_Digest(Concat(*texts, output_field=TextField())))
    return dict(found.values_list("owner", "stand"))


class ListStanding(NamedTuple):
    """What a person's list was read at."""

    owned: str
    """How their conversations stand: not the same where anything was recorded in one, or done with it."""
    notices: Notices
    everybody: bool = False
    """Whether the approvals that are counted are everybody's: they decide for others."""


def notices_now() -> Notices:
    """What all must know of the site now."""
    switch = active_switch()
    return switch.pk if switch else 0, is_short()


def waiting_now() -> int:
    """How many approvals of everybody wait, as far as they are counted."""
    from conversations.pages.sidebar import COUNT_MOST

    return Output.objects.pending().order_by()[:COUNT_MOST].count()


def decides_for_others(person: int) -> bool:
    """Whether the approvals that this person is shown are everybody's."""
    staff = get_user_model().objects.filter(pk=person, is_staff=True).first()
    return staff is not None and staff.has_perm(OTHERS)
