"""The list of conversations: renaming, archiving and marking them as seen. No step records these.

Open pages learn of it through a hint.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from agents.engine.ledger import valid_text
from agents.engine.secrets import hide
from conversations.database.hints import hint_changed
from conversations.ledger.secrets import secrets_in
from conversations.models import Conversation

TITLE_MOST = 200
"""Maximum length of a title, in characters."""


class BadTitle(ValueError):
    """A title that is not accepted; the message says why."""


def rename(conversation: Conversation, title: str) -> None:
    """Set the title, joined to one line. Raises BadTitle if it is empty or longer than TITLE_MOST characters."""
    with secrets_in(conversation).hidden():
        cleaned = hide(" ".join(valid_text(title).split()))
    if not cleaned:
        raise BadTitle("Enter a title.")
    if len(cleaned) > TITLE_MOST:
        raise BadTitle(f"A title can have at most {TITLE_MOST} characters; this one has {len(cleaned)}.")
    _change(conversation, title=cleaned)


def archive(conversation: Conversation) -> None:
    """Archive it: it is found by search and under "Archived", and returns to the list with the next message."""
    if conversation.archived_at is None:
        _change(conversation, archived_at=timezone.now())


def unarchive(conversation: Conversation) -> None:
    """Return it to the list."""
    if conversation.archived_at is not None:
        _change(conversation, archived_at=None)


def mark_seen(conversation_id: int, seq: int) -> None:
    """Record that its owner has seen it up to this step. The mark never moves back, nor beyond the last step."""
    unseen = Conversation.objects.filter(pk=conversation_id, seen_seq__lt=seq, seq__gte=seq)
    with transaction.atomic():
        if unseen.update(seen_seq=seq):
            hint_changed(conversation_id)


def _change(conversation: Conversation, **columns: Any) -> None:
    """Update columns, not by `save`: that would set `updated_at`, as if there were a new message."""
    with transaction.atomic():
        Conversation.objects.filter(pk=conversation.pk).update(**columns)
        hint_changed(conversation.pk)
    for name, value in columns.items():
        setattr(conversation, name, value)
