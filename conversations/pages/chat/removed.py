"""What pages say about a conversation that was archived or deleted."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from conversations.models import Erasure

KINDS = ARCHIVED, DELETED = "archived", "deleted"
"""The tags of these messages: the id of an archived conversation, which can be undone, or the title of a deleted one.

Other pages use Django's messages too.
"""


def take_flash(request: HttpRequest) -> dict[str, str]:
    """Return the last message that was not shown yet, by its kind, and discard it. Other pages' messages are kept."""
    said = list(messages.get_messages(request))
    for message in said:
        if message.extra_tags not in KINDS:
            messages.add_message(request, message.level, message.message, message.extra_tags or "")
    told = [(message.extra_tags, str(message)) for message in said if message.extra_tags in KINDS]
    return dict(told[-1:])


def deleted_page(request: HttpRequest, user: User, conversation: int) -> HttpResponse:
    """Return 410 to whoever deleted this conversation, e.g. after "Back" in a browser; otherwise raise Http404."""
    return render(request, "conversations/gone.html", {"erasure": own_erasure(user, conversation)}, status=410)


def own_erasure(user: User, conversation: int) -> Erasure:
    """Return the erasure of this conversation for whoever made it. Raises Http404 for everybody else."""
    return get_object_or_404(Erasure, conversation_id=conversation, erased_by=user.get_username())
