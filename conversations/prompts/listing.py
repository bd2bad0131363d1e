"""The list of conversations: renaming, archiving and marking them as seen; their system prompt. No step records these.

Open pages learn of it through a hint on PostgreSQL, and on SQLite by `unsaid`, which `conversations.push.watch` reads.
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.db.models.expressions import RawSQL
from django.utils import timezone

from agents.engine.ledger import valid_text
from agents.engine.secrets import hide
from agents.models import SystemPrompt
from conversations.database.hints import hint_changed
from conversations.ledger.secrets import secrets_in
from conversations.models import Conversation
from conversations.prompts.system_prompts import hold

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


def choose_system_prompt(conversation: Conversation, chosen: SystemPrompt | None) -> None:
    """Choose the system prompt of its agent, from the next turn on. None: the one of conversations that chose none.

    Raises NotChoosable for one that is gone.
    """
    if conversation.system_prompt != chosen:
        with transaction.atomic():
            _change(conversation, system_prompt=chosen)  # first, as whoever deletes a system prompt does it
            hold(chosen)


def mark_seen(conversation_id: int, seq: int) -> None:
    """Record that its owner has seen it up to this step. The mark never moves back, nor beyond the last step."""
    unseen = Conversation.objects.filter(pk=conversation_id, seen_seq__lt=seq, seq__gte=seq)
    with transaction.atomic():
        if unseen.update(seen_seq=seq, unsaid=_next_unsaid()):
            hint_changed(conversation_id)


def _change(conversation: Conversation, **columns: Any) -> None:
    """Update columns, not by `save`: that would set `updated_at`, as if there were a new message."""
    with transaction.atomic():
        Conversation.objects.filter(pk=conversation.pk).update(**columns, unsaid=_next_unsaid())
        hint_changed(conversation.pk)
    for name, value in columns.items():
        setattr(conversation, name, value)


def _next_unsaid() -> RawSQL:
    """Return the number after all numbers of such changes so far; on PostgreSQL, two at the same time may share it."""
    return RawSQL("(SELECT max(unsaid) + 1 FROM conversations_conversation)", ())
