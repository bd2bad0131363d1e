"""Errors under `/context`, in the shape that OpenAI's clients read."""

from __future__ import annotations

from typing import Any

from django.db import Error
from django.http import HttpResponse
from rest_framework.views import set_rollback

from conversations.api.errors import RequestRefused, refusal
from conversations.database.away import is_away
from conversations.database.busy import RETRY_SECONDS, DatabaseBusy
from conversations.push.access import NOT_FOUND
from conversations.push.listener import ListeningEnded
from conversations.push.share import TooMany

FULL_SECONDS = 30
"""When to try again, for somebody who has too many requests open."""
FULL = "You have as many requests and pages open as one person may. Send this one again when some have ended."
REVOKED = "This key may not be used any more."
DELETED = "The conversation was deleted, and the turn with it."


def deleted() -> RequestRefused:
    """Return what a client is told whose conversation was deleted while it asked."""
    return RequestRefused(404, "conversation_not_found", DELETED)


def refusal_of(error: Exception) -> RequestRefused | None:
    """Return what an exception means to a client; None if it is our own fault."""
    if isinstance(error, TooMany):
        return RequestRefused(429, "throttled", FULL, retry_after=FULL_SECONDS)
    if isinstance(error, ListeningEnded):
        return deleted() if error.code == NOT_FOUND else RequestRefused(401, "bad_key", REVOKED)
    if isinstance(error, Error) and is_away(error):
        return RequestRefused(503, "busy", str(DatabaseBusy()), retry_after=RETRY_SECONDS)
    return refusal(error)


def openai_handler(error: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """Return the answer to an exception of a view; None for an unexpected one, which is logged and answered later."""
    refused = refusal_of(error)
    if refused is None:
        return None
    set_rollback()
    return refused.for_openai()
