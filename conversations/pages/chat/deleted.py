"""The page of a deleted conversation, for the person who deleted it."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from conversations.models import Erasure


def deleted_page(request: HttpRequest, user: User, conversation: int) -> HttpResponse:
    """Return 410 to whoever deleted this conversation, e.g. after "Back" in a browser; otherwise raise Http404."""
    return render(request, "conversations/gone.html", {"erasure": own_erasure(user, conversation)}, status=410)


def own_erasure(user: User, conversation: int) -> Erasure:
    """Return the erasure of this conversation for whoever made it. Raises Http404 for everybody else."""
    return get_object_or_404(Erasure, conversation_id=conversation, erased_by=user.get_username())
