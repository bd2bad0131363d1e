"""Flash messages for a conversation that was archived or deleted: shown once, on the next page with the list."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest

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
