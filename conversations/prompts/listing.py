"""What its owner does with a conversation as a whole: name it, put it away, see it. No step records these.

Open pages are told by `relisted`, which this process hears, and on PostgreSQL by a notification, which all do.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from django.db import connection, transaction
from django.dispatch import Signal
from django.utils import timezone

from agents.engine.ledger import valid_text
from agents.engine.secrets import hide
from conversations.database.sql import CHANNEL
from conversations.models import Conversation

TITLE_MOST = 200
"""Characters of a title."""
relisted = Signal()
"""Sent after the commit, with `conversation` and `owner`, their ids: it stands in the list otherwise than before."""


class BadTitle(ValueError):
    """A title that cannot be taken; the message says why."""


def rename(conversation: Conversation, title: str) -> None:
    """Give it this title, on one line. Raises BadTitle for an empty one and for more than TITLE_MOST characters."""
    cleaned = hide(" ".join(valid_text(title).split()))
    if not cleaned:
        raise BadTitle("A title has at least one character.")
    if len(cleaned) > TITLE_MOST:
        raise BadTitle(f"A title has {TITLE_MOST} characters at most, and this one {len(cleaned)}.")
    _change(conversation, title=cleaned)


def archive(conversation: Conversation) -> None:
    """Put it away: it is found by searching and under "Archived", and comes back with the next message."""
    if conversation.archived_at is None:
        _change(conversation, archived_at=timezone.now())


def put_back(conversation: Conversation) -> None:
    """Put it back into the list."""
    if conversation.archived_at is not None:
        _change(conversation, archived_at=None)


def saw(conversation_id: int, seq: int) -> None:
    """Its owner had it in view up to this step. Never moves back, nor beyond the last step."""
    unseen = Conversation.objects.filter(pk=conversation_id, seen_seq__lt=seq, seq__gte=seq)
    with transaction.atomic():
        if unseen.update(seen_seq=seq):
            owner = Conversation.objects.values_list("owner_id", flat=True).get(pk=conversation_id)
            tell(conversation_id, owner)


def tell(conversation_id: int, owner_id: int) -> None:
    """Have the open pages told, once this is committed, that it stands in the list otherwise than before."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, f"{conversation_id}:{owner_id}"])
    else:
        transaction.on_commit(partial(relisted.send, None, conversation=conversation_id, owner=owner_id))


def _change(conversation: Conversation, **columns: Any) -> None:
    """Not by `save`, which would say that something was said in it now."""
    with transaction.atomic():
        Conversation.objects.filter(pk=conversation.pk).update(**columns)
        tell(conversation.pk, conversation.owner_id)
    for name, value in columns.items():
        setattr(conversation, name, value)
