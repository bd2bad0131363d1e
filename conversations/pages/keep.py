"""What one does with a conversation as a whole: put it away and back, take it along as Markdown, delete it."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_GET, require_http_methods

from conversations.erasure import REASON_MOST, TurnRuns, erase
from conversations.export import exported, file_name
from conversations.listing import archive, put_back
from conversations.models import Conversation
from conversations.pages.chat import PersonRequest
from conversations.pages.done import say_archived, say_deleted
from conversations.pages.posting import posted

RUNS = "A turn runs here: stop it first. Nothing was deleted."


@posted
def put_away(request: PersonRequest, pk: int) -> HttpResponse:
    """Archive a conversation. The list says so, and offers to undo it."""
    found = _mine(request, pk)
    archive(found)
    say_archived(request, found)
    return redirect("home")


@posted
def bring_back(request: PersonRequest, pk: int) -> HttpResponse:
    """Put a conversation back into the list, and show it."""
    found = _mine(request, pk)
    put_back(found)
    return redirect(found)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: PersonRequest, pk: int) -> HttpResponse:
    """Say what goes and what stays; by POST, delete it. 409 while a worker is at a turn of it."""
    found, problem = _mine(request, pk), ""
    if request.method == "POST":
        title = str(found)
        try:
            erase(found, request.user, request.POST.get("reason", "").strip()[:REASON_MOST])
        except TurnRuns:
            problem = RUNS
        except Conversation.DoesNotExist:
            raise Http404 from None  # somebody deleted it at the same moment
        else:
            say_deleted(request, title)
            return redirect("home")
    context = {
        "conversation": found,
        "problem": problem,
        "reason": request.POST.get("reason", ""),
        "reason_most": REASON_MOST,
        "turns": found.prompts.filter(visible=True).count(),
        "files": found.files.count(),
    }
    return render(request, "conversations/delete.html", context, status=409 if problem else 200)


@login_required
@require_GET
def export(request: PersonRequest, pk: int) -> HttpResponse:
    """A conversation as a Markdown file."""
    found = _mine(request, pk)
    response = HttpResponse(exported(found), content_type="text/markdown; charset=utf-8")
    response.headers["Content-Disposition"] = content_disposition_header(True, file_name(found))
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


def _mine(request: PersonRequest, pk: int) -> Conversation:
    """The conversation, for its owner. Raises Http404 where it is not theirs."""
    mine = Conversation.objects.visible_to(request.user).select_related("owner", "active_prompt")
    return get_object_or_404(mine, pk=pk)
