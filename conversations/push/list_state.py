"""State that pages show but no step records, in a form that can be compared: a hint of a change may be lost."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.auth import get_user_model
from django.db.models import Aggregate, OuterRef, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Coalesce, Concat

from conversations.approvals.permissions import DECIDE_OTHERS, count_waiting
from conversations.database.disk import is_short
from conversations.models import Conversation, Notice, Redaction
from conversations.prompts.killswitch import active_switch

Notices = tuple[int, bool]
"""The notices to everybody: the row by which the kill switch is on, 0 for off, and whether the disk is full."""
LISTED = ("title", "archived_at", "redaction")


class ListedConversation(NamedTuple):
    """The state of a conversation: title, when it was archived, and the id of its last redaction (0 if none)."""

    title: str
    archived_at: datetime | None
    redaction: int


def annotate_listing(conversations: QuerySet[Conversation]) -> QuerySet[Conversation, Any]:
    """Annotate these with LISTED. The redactions of a conversation have ids in order: each is made under its lock."""
    last = Redaction.objects.filter(conversation=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    return conversations.annotate(redaction=Coalesce(Subquery(last), 0))


def current_listing(conversation: int) -> ListedConversation | None:
    """Return the current state of a conversation; None if it is gone."""
    row = annotate_listing(Conversation.objects.filter(pk=conversation)).values_list(*LISTED).first()
    return row and ListedConversation(*row)


class _Digest(Aggregate):
    """One short digest of a text from many rows, in any order: a different order only causes one needless read."""

    function = "string_agg"
    template = "md5(%(function)s(%(expressions)s, ' '))"
    output_field = TextField()

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> tuple[str, Any]:
        """Use SQLite's function."""
        return self.as_sql(compiler, connection, function="group_concat", **more)


def owned_digests(people: Collection[int]) -> dict[int, str]:
    """Return a digest of the state of all conversations, recorded or not, by user who has any, and of their news.

    All in one query.
    """
    columns = ("pk", "seq", "seen_seq", "archived_at", "title")
    texts = [text for name in columns for text in (name, Value(" "))]
    rows = Conversation.objects.filter(owner__in=people).order_by().values("owner")
    found = rows.annotate(stand=_Digest(Concat(*texts, output_field=TextField())))
    news = Notice.objects.filter(user=OuterRef("owner"), page=True).order_by("-pk").values("pk")[:1]
    found = found.annotate(news=Coalesce(Subquery(news), 0))
    return {owner: f"{stand} {newest}" for owner, stand, newest in found.values_list("owner", "stand", "news")}


class ListState(NamedTuple):
    """The state at which a user's list was read."""

    owned: str
    """The digest of their conversations and news. It changes with every record, and whatever else is done to one."""
    notices: Notices
    waiting: int | None = None
    """How many approvals wait for the user, if others' are among them: these change though none of the list does."""


def current_notices() -> Notices:
    """Return the current notices to everybody."""
    switch = active_switch()
    return switch.pk if switch else 0, is_short()


def current_list_state(person: int) -> ListState:
    """Return the current state of a user's list."""
    user = get_user_model().objects.get(pk=person)
    owned = owned_digests([person]).get(person, "")
    return ListState(owned, current_notices(), count_waiting(user) if user.has_perm(DECIDE_OTHERS) else None)
