"""The chat: the list of conversations, one conversation, and what people do there."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from conversations.approvals.permissions import may_decide, shown_to
from conversations.models import Conversation, Output, Prompt
from conversations.pages.composer import Composer
from conversations.pages.forms import Message
from conversations.pages.sidebar import sidebar
from conversations.pages.timeline import TURNS_MOST, timeline
from conversations.prompts import BadInput, TurnInProgress, cancel_prompt, start_conversation, start_prompt
from conversations.shown.people import deciders


class PersonRequest(HttpRequest):
    """A request of somebody who is logged in."""

    user: User


@login_required
@require_GET
def home(request: PersonRequest) -> HttpResponse:
    """The list and an empty conversation; a phone shows the list alone while there is one."""
    return _empty(request, Composer(reverse("start")), one_pane="list")


@login_required
@require_GET
def new(request: PersonRequest) -> HttpResponse:
    """An empty conversation; its first message starts it."""
    return _empty(request, Composer(reverse("start")), one_pane="thread")


@require_POST
@login_required
def start(request: PersonRequest) -> HttpResponse:
    """Start a conversation by its first message. 400 with the text kept where the message cannot be taken."""
    message = Message(request.POST)
    try:
        with transaction.atomic():
            conversation = start_conversation(request.user)
            _send(request, conversation, message)
    except BadInput as error:
        return _empty(request, _kept(reverse("start"), message, error), one_pane="thread", status=400)
    return redirect(f"{conversation.get_absolute_url()}#now")


@login_required
@require_GET
def conversation(request: PersonRequest, pk: int) -> HttpResponse:
    """One conversation."""
    return _thread(request, _conversation(request, pk))


@require_POST
@login_required
def say(request: PersonRequest, pk: int) -> HttpResponse:
    """Send a message. 409 while a turn runs or waits, 400 where it cannot be taken; the text is kept in the field."""
    found, message = _conversation(request, pk), Message(request.POST)
    try:
        _send(request, found, message)
    except TurnInProgress as error:
        return _thread(request, _conversation(request, pk), _kept(_action(found), message, error), status=409)
    except BadInput as error:
        return _thread(request, found, _kept(_action(found), message, error), status=400)
    return redirect(f"{found.get_absolute_url()}#now")


@require_POST
@login_required
def stop(request: PersonRequest, pk: int) -> HttpResponse:
    """Stop a turn. What was typed meanwhile stays in the field."""
    prompt = get_object_or_404(Prompt.objects.visible_to(request.user), pk=pk)
    cancel_prompt(prompt.pk, request.user)
    message = Message(request.POST)
    if not message.text.strip():
        return redirect(f"{prompt.conversation.get_absolute_url()}#now")
    found = _conversation(request, prompt.conversation_id)
    return _thread(request, found, Composer(_action(found), found.active_prompt, message.text, message.tier))


def _conversation(request: PersonRequest, pk: int) -> Conversation:
    """The conversation, for its reader. Raises Http404 where it is not theirs."""
    mine = Conversation.objects.visible_to(request.user)
    return get_object_or_404(mine.select_related("owner", "active_prompt"), pk=pk)


def _send(request: PersonRequest, conversation: Conversation, message: Message) -> None:
    """Raises BadInput, TurnInProgress."""
    if message.problem:
        raise BadInput(message.problem)
    start_prompt(conversation, request.user, message.text, tier=message.tier)


def _kept(action: str, message: Message, error: Exception) -> Composer:
    return Composer(action, None, message.text, message.tier, str(error))


def _action(conversation: Conversation) -> str:
    return reverse("say", args=[conversation.pk])


def _empty(request: PersonRequest, composer: Composer, *, one_pane: str, status: int = 200) -> HttpResponse:
    context = {"composer": composer} | _frame(request)
    if not (context["sidebar"].groups or context["sidebar"].query):
        one_pane = "thread"
    return render(request, "conversations/empty.html", context | {"one_pane": one_pane}, status=status)


def _thread(
    request: PersonRequest, conversation: Conversation, composer: Composer | None = None, status: int = 200
) -> HttpResponse:
    turns = timeline(conversation, request.user, _turns_wanted(request))
    waiting = [card for turn in turns for card in turn.waiting]
    context = {
        "conversation": conversation,
        "turns": turns,
        "earlier": turns[0].prompt.number > 1 if turns else False,
        "more_turns": len(turns) + TURNS_MOST,
        "waiting": waiting,
        "composer": composer or Composer(_action(conversation), conversation.active_prompt),
        "decides": bool(waiting) and request.user.is_staff and may_decide(request.user, waiting[0].row),
        "deciders": list(deciders(conversation.owner)[:4]) if waiting else [],
    }
    return render(request, "conversations/thread.html", context | _frame(request), status=status)


def _turns_wanted(request: HttpRequest) -> int:
    wanted = request.GET.get("turns", "")
    return max(int(wanted), 1) if wanted.isascii() and wanted.isdigit() and len(wanted) < 7 else TURNS_MOST


def _frame(request: PersonRequest) -> dict[str, Any]:
    """What stands around every page: the list, and for staff how many approvals wait."""
    staff = request.user.is_staff
    return {
        "sidebar": sidebar(request.user, request.GET.get("q", "").strip()),
        "approvals": shown_to(request.user, Output.objects.pending())[:100].count() if staff else 0,
    }
