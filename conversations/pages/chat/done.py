"""What was done with a conversation that is no longer on the page: said once, on the next page with the list."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest

from conversations.models import Conversation

KINDS = ARCHIVED, DELETED = "archived", "deleted"
"""The tags of what is said here. Other pages say things by messages too."""


@dataclass(frozen=True)
class Done:
    """`archived` is the conversation that was put away, which can be undone; else `deleted` is the title of one."""

    archived: int = 0
    deleted: str = ""


def say_archived(request: HttpRequest, conversation: Conversation) -> None:
    """The next list says that this was put away, and offers to undo it."""
    messages.info(request, str(conversation.pk), extra_tags=ARCHIVED)


def say_deleted(request: HttpRequest, title: str) -> None:
    """The next list says that the conversation of this title is gone."""
    messages.info(request, title, extra_tags=DELETED)


def done(request: HttpRequest) -> Done | None:
    """What was done last and not said yet. It is said with this answer; what others have to say stays for them."""
    said = list(messages.get_messages(request))
    for message in said:
        if message.extra_tags not in KINDS:
            messages.add_message(request, message.level, message.message, message.extra_tags or "")
    told = [(message.extra_tags, str(message)) for message in said if message.extra_tags in KINDS]
    if not told:
        return None
    kind, what = told[-1]
    return Done(archived=int(what)) if kind == ARCHIVED else Done(deleted=what)
