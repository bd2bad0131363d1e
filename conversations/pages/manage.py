"""Pages that manage a whole conversation: its system prompt, its archive, its export, its usage, its deletion."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_http_methods

from agents.engine.ledger import valid_text
from conversations.accounts.http import PersonRequest
from conversations.display.export import export_markdown, file_name
from conversations.erasure.conversations import REASON_MOST, TurnRuns, erase
from conversations.models import Conversation, ConversationKind
from conversations.pages.chat.choosing import Choice
from conversations.pages.chat.removed import ARCHIVED, DELETED, deleted_page
from conversations.pages.chat.views import own_conversation
from conversations.pages.decorators import form_view, page_view
from conversations.pages.timeline.turns import TURNS_MOST
from conversations.prompts.listing import archive, choose_system_prompt, unarchive
from conversations.prompts.system_prompts import NotChoosable
from conversations.usage.totals import NOTHING, by_model, of_conversations, of_prompts

RUNS = "A turn is still running: stop it first. Nothing was deleted."


@form_view
def archive_view(request: PersonRequest, pk: int) -> HttpResponse:
    """Archive a conversation. The list says so and offers to undo it."""
    found = own_conversation(request, pk)
    archive(found)
    messages.info(request, str(found.pk), extra_tags=ARCHIVED)
    return redirect("home")


@form_view
def unarchive_view(request: PersonRequest, pk: int) -> HttpResponse:
    """Unarchive a conversation, and show it."""
    found = own_conversation(request, pk)
    unarchive(found)
    return redirect(found)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def choose_view(request: PersonRequest, pk: int) -> HttpResponse:
    """Show the system prompts; on POST, choose one, from the next turn on. 400 if it cannot be chosen."""
    found, problem = own_conversation(request, pk), ""
    if found.kind != ConversationKind.CHAT:
        raise Http404("Runs have no system prompt.")
    choice = Choice.of(found)
    if request.method == "POST":
        try:
            choose_system_prompt(found, choice.named(request.POST.get("system_prompt", "")))
        except NotChoosable as error:
            problem = str(error)
        else:
            return redirect(f"{found.get_absolute_url()}#now")
    context = {"conversation": found, "choice": choice, "problem": problem}
    return render(request, "conversations/choose.html", context, status=400 if problem else 200)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: PersonRequest, pk: int) -> HttpResponse:
    """Ask for confirmation; on POST, delete the conversation. 409 while a worker runs a turn of it, 410 if gone."""
    try:
        found, problem = own_conversation(request, pk), ""
    except Http404:
        return deleted_page(request, request.user, pk)
    if request.method == "POST":
        title = str(found)
        try:
            erase(found, request.user, valid_text(request.POST.get("reason", "")).strip()[:REASON_MOST])
        except TurnRuns:
            problem = RUNS
        except Conversation.DoesNotExist:
            raise Http404 from None  # somebody else deleted it at the same moment
        else:
            messages.info(request, title, extra_tags=DELETED)
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


@page_view
def export(request: PersonRequest, pk: int) -> HttpResponse:
    """Download a conversation as a Markdown file."""
    found = own_conversation(request, pk)
    response = HttpResponse(export_markdown(found), content_type="text/markdown; charset=utf-8")
    response.headers["Content-Disposition"] = content_disposition_header(True, file_name(found))
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


@page_view
def usage(request: PersonRequest, pk: int) -> HttpResponse:
    """Show the tokens and cost of a conversation: in total, by model, and turn by turn."""
    found = own_conversation(request, pk)
    prompts = found.prompts.filter(rounds__gt=0).order_by("-number")
    newest = list(prompts[:TURNS_MOST])
    spent = of_prompts({prompt.conversation_id for prompt in newest}, [prompt.pk for prompt in newest])
    context = {
        "conversation": found,
        "spent": of_conversations([pk]).get(pk, NOTHING),
        "models": by_model(pk),
        "turns": [(prompt, spent.get(prompt.pk, NOTHING)) for prompt in newest],
        "more": prompts.count() - len(newest),
    }
    return render(request, "conversations/usage.html", context)
