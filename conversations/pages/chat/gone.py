"""What is said of a conversation that is not there any more, to whoever deleted it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from conversations.models import Erasure

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def gone(request: HttpRequest, user: User, conversation: int) -> HttpResponse:
    """410 for who deleted this conversation, as after "Back" in their browser. Raises Http404 for everybody else."""
    return render(request, "conversations/gone.html", {"erasure": erased_by(user, conversation)}, status=410)


def erased_by(user: User, conversation: int) -> Erasure:
    """The trace of this conversation, for who deleted it. Raises Http404 for everybody else."""
    return get_object_or_404(Erasure, conversation_id=conversation, erased_by=user.get_username())
