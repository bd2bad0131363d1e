"""Flash messages for a conversation that was archived or deleted: shown once, on the next page with the list."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest

from conversations.models import Conversation

KINDS = ARCHIVED, DELETED = "archived", "deleted"
"""The tags of these messages. Other pages use Django's messages too."""


@dataclass(frozen=True)
class Flash:
    """`archived` is the id of the archived conversation, which can be undone; otherwise `deleted` is a title."""

    archived: int = 0
    deleted: str = ""


def flash_archived(request: HttpRequest, conversation: Conversation) -> None:
    """Let the next list say that this conversation was archived, with a button to undo it."""
    messages.info(request, str(conversation.pk), extra_tags=ARCHIVED)


def flash_deleted(request: HttpRequest, title: str) -> None:
    """Let the next list say that the conversation with this title was deleted."""
    messages.info(request, title, extra_tags=DELETED)


def take_flash(request: HttpRequest) -> Flash | None:
    """Return the last message that was not shown yet, and discard it. Messages of other pages are kept for them."""
    said = list(messages.get_messages(request))
    for message in said:
        if message.extra_tags not in KINDS:
            messages.add_message(request, message.level, message.message, message.extra_tags or "")
    told = [(message.extra_tags, str(message)) for message in said if message.extra_tags in KINDS]
    if not told:
        return None
    kind, what = told[-1]
    return Flash(archived=int(what)) if kind == ARCHIVED else Flash(deleted=what)
