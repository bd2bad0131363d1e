"""The chat page: the list of conversations, one conversation, and its actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django_htmx.http import HttpResponseClientRedirect

from agents.models import Suggestion
from conversations.accounts.http import PersonRequest
from conversations.database.busy import DatabaseBusy, reporting_busy
from conversations.database.disk import DiskFull
from conversations.database.erasable_cache import annotate_removed
from conversations.display.decision_form import open_asked
from conversations.display.html_cache import use_html_cache
from conversations.files.uploads import BadFile
from conversations.models import Conversation, Prompt
from conversations.pages.chat.choosing import Choice, annotate_choice, chosen_by_id
from conversations.pages.chat.composer import Composer, Message
from conversations.pages.chat.dock import Dock
from conversations.pages.chat.live import answer_html, fragment, list_html, page_seq
from conversations.pages.chat.removed import deleted_page, own_erasure, take_flash
from conversations.pages.csp import allow_own_frames
from conversations.pages.decorators import form_view, page_view
from conversations.pages.sidebar import sidebar
from conversations.pages.timeline.turns import TURNS_MOST, shown_prompts, timeline
from conversations.prompts import startable
from conversations.prompts.idempotency import KeyReused
from conversations.prompts.killswitch import SiteStopped
from conversations.prompts.lines import SentMessage, start_line
from conversations.prompts.listing import BadTitle, rename
from conversations.prompts.start import (
    BadInput,
    Deactivated,
    TurnInProgress,
    begin_conversation,
    cancel_prompt,
    continue_prompt,
    repeat_prompt,
    start_prompt,
)
from conversations.prompts.startable import NotAllowed, UnknownPolicy
from conversations.prompts.system_prompts import NotChoosable
from conversations.usage.quotas import OverQuota

REFUSAL_STATUS: dict[type[Exception], int] = {
    Deactivated: 403,
    NotAllowed: 403,
    UnknownPolicy: 404,
    TurnInProgress: 409,
    SiteStopped: 409,
    OverQuota: 429,
    DatabaseBusy: 503,
    DiskFull: 507,
}
"""Reasons why a valid message is refused, and the status of the answer. Its text stays in the field."""
REFUSED: tuple[type[Exception], ...] = (BadInput, BadFile, KeyReused, NotChoosable, *REFUSAL_STATUS)
"""All reasons why no turn starts."""
DELETED = "This conversation was deleted: start a new one."
ALREADY_SENT = "The previous message from this page did arrive: see its conversation. This one was not sent."


@page_view
def home(request: PersonRequest) -> HttpResponse:
    """Show the list and an empty conversation. A phone shows only the list, unless that is empty.

    Like every page with the message field: if its address gives a `message`, the field has it.
    """
    composer = Composer.given(reverse("start"), request)
    return _empty(request, composer, one_pane="thread" if composer.text else "list")


@page_view
def conversation_list(request: PersonRequest) -> HttpResponse:
    """Return only the list, for the search field."""
    return render(request, "conversations/list.html", _sidebar_context(request))


@page_view
def new(request: PersonRequest) -> HttpResponse:
    """Show an empty conversation. Its first message creates it."""
    return _empty(request, Composer.given(reverse("start"), request), one_pane="thread")


@form_view
def start(request: PersonRequest) -> HttpResponse:
    """Create a conversation with its first message. If the message is refused: 400, with the text kept."""
    message = Message(request)
    try:
        files = message.uploads()
        with reporting_busy():
            started = _start_line(request.user, message, None)
            if isinstance(started, str):
                return _go(request, started)
            prompt = started or begin_conversation(
                request.user,
                message.text,
                tier=message.tier,
                key=message.key,
                files=files,
                system_prompt=chosen_by_id(message.chosen),
            )
    except REFUSED as error:
        kept = _refused_composer(reverse("start"), message, error, REFUSAL_STATUS.get(type(error), 400))
        if request.htmx:
            return HttpResponse(answer_html(kept), status=kept.status)
        return _empty(request, kept, one_pane="thread")
    return _go(request, f"{prompt.conversation.get_absolute_url()}#now")


@page_view
def conversation(request: PersonRequest, pk: int) -> HttpResponse:
    """Show one conversation; 410 for whoever deleted it."""
    try:
        found = own_conversation(request, pk)
    except Http404:
        return deleted_page(request, request.user, pk)
    return _thread(request, found)


@form_view
def send(request: PersonRequest, pk: int) -> HttpResponse:
    """Send a message. If it is refused, its text stays in the field: 400 if it is not valid, 409, 429 or 503 if it
    cannot be accepted now, 410 if the reader deleted the conversation.

    A line starts what it names, in this conversation; what it lacks is asked for on the page of a form.
    """
    message = Message(request)

    def start(found: Conversation) -> str | None:
        files = message.uploads()
        started = _start_line(request.user, message, found)
        if started is None:
            start_prompt(found, request.user, message.text, tier=message.tier, key=message.key, files=files)
        return started if isinstance(started, str) else None

    return _start_in(request, pk, message, start, 400)


@form_view
def stop(request: PersonRequest, pk: int) -> HttpResponse:
    """Stop a turn. Text that was typed meanwhile stays in the field."""
    prompt, message = _prompt(request, pk), Message(request)
    try:
        cancel_prompt(prompt.pk, request.user)
        found = own_conversation(request, prompt.conversation_id)
    except (Http404, ObjectDoesNotExist):
        return _answer_deleted(request, prompt.conversation_id, message)
    typed = Composer(_message_url(found), message.text, message.tier, fresh=False) if message.text.strip() else None
    return _answer(request, found, typed)


@form_view
def continue_turn(request: PersonRequest, pk: int) -> HttpResponse:
    """Continue a turn that failed or was stopped: a new turn without input (R5). 409 if that is not possible."""
    return _start_after(request, pk, continue_prompt)


@form_view
def repeat_turn(request: PersonRequest, pk: int) -> HttpResponse:
    """Repeat the message of a turn: a new turn, with the old one collapsed above it. 409 if that is not possible.

    What is started from a form is not repeated unseen: its form is opened, with the input of this turn.
    """
    prompt = _prompt(request, pk)
    if form := startable.again_at(prompt.policy, prompt.pk):
        return _go(request, form)
    return _start_after(request, pk, repeat_prompt)


def _start_after(request: PersonRequest, pk: int, start: Callable[[int, User], Prompt]) -> HttpResponse:
    prompt = _prompt(request, pk)
    return _start_in(request, prompt.conversation_id, Message(request), lambda _: start(prompt.pk, request.user), 409)


def _start_line(by: User, message: Message, conversation: Conversation | None) -> Prompt | str | None:
    """Start what the message names, if it is a line; returns and raises as a LineStart does."""
    return start_line(SentMessage(by, message.text, conversation, message.key, bool(message.files)))


def _go(request: PersonRequest, address: str) -> HttpResponse:
    return HttpResponseClientRedirect(address) if request.htmx else redirect(address)


def _start_in(
    request: PersonRequest,
    pk: int,
    message: Message,
    start: Callable[[Conversation], Prompt | str | None],
    otherwise: int,
) -> HttpResponse:
    """Start a turn in this conversation. `otherwise`: the status if it is refused for a reason without one.

    Where `start` returns an address, it is opened: nothing has started.
    """
    try:
        found = own_conversation(request, pk)
        with reporting_busy():
            form = start(found)
    except (Http404, ObjectDoesNotExist):  # also if it was deleted at this moment
        return _answer_deleted(request, pk, message)
    except REFUSED as error:
        status = 409 if isinstance(error, KeyReused) else REFUSAL_STATUS.get(type(error), otherwise)
        return _answer(request, found, _refused_composer(_message_url(found), message, error, status))
    return _go(request, form) if isinstance(form, str) else _answer(request, found)


@form_view
def rename_conversation(request: PersonRequest, pk: int) -> HttpResponse:
    """Rename a conversation. If the title is refused: 400, with the title as it was typed."""
    found, title = own_conversation(request, pk), request.POST.get("title", "")
    try:
        rename(found, title)
    except BadTitle as error:
        renaming = {"text": title, "problem": str(error)}
        if not request.htmx:
            return _thread(request, found, renaming=renaming)
        context = {"conversation": found, "renaming": renaming, "oob": True}
        return render(request, "conversations/dock/menu.html", context, status=400)
    if request.htmx:
        return HttpResponse(fragment(request.user, found, page_seq(request)))
    return redirect(found)


def own_conversation(request: PersonRequest, pk: int) -> Conversation:
    """Return the conversation for its reader. Raises Http404 if it is not theirs."""
    mine = annotate_choice(annotate_removed(Conversation.objects.visible_to(request.user)))
    return get_object_or_404(mine.select_related("owner", "active_prompt"), pk=pk)


def _prompt(request: PersonRequest, pk: int) -> Prompt:
    """Return the turn for its reader. Raises Http404 if it is not theirs."""
    return get_object_or_404(Prompt.objects.visible_to(request.user), pk=pk)


def _answer_deleted(request: PersonRequest, pk: int, message: Message) -> HttpResponse:
    """Answer the form of whoever deleted this conversation: 410, with the text kept for a new one.

    Raises Http404 for everybody else.
    """
    own_erasure(request.user, pk)
    kept = _refused_composer(reverse("start"), message, DELETED, 410)
    if request.htmx:
        return HttpResponse(list_html(request.user.pk) + answer_html(kept), status=kept.status)
    return _empty(request, kept, one_pane="thread")


def _refused_composer(action: str, message: Message, problem: Exception | str, status: int) -> Composer:
    taken = isinstance(problem, KeyReused)
    why = ALREADY_SENT if taken else str(problem)
    later = isinstance(problem, TurnInProgress)
    return Composer(action, message.text, message.tier, why, len(message.files), status, fresh=taken, later=later)


def _message_url(conversation: Conversation) -> str:
    return reverse("say", args=[conversation.pk])


def _answer(request: PersonRequest, conversation: Conversation, composer: Composer | None = None) -> HttpResponse:
    """Answer a form: what changed if htmx sent it, otherwise the page. `composer`: what should stay in it."""
    if request.htmx:
        shown = composer or Composer(_message_url(conversation))
        html = fragment(request.user, conversation, page_seq(request))
        return HttpResponse(html + answer_html(shown), status=shown.status)
    if composer is None:
        return redirect(f"{conversation.get_absolute_url()}#now")
    return _thread(request, own_conversation(request, conversation.pk), composer)


def _empty(request: PersonRequest, composer: Composer, *, one_pane: str) -> HttpResponse:
    context: dict[str, Any] = {"composer": composer, "done": take_flash(request)} | _sidebar_context(request)
    context["suggestions"] = [] if settings.DEMO else Suggestion.shown()
    context["choice"] = Choice.given(request)
    beside = context["sidebar"]
    if not (beside.groups or beside.stays or beside.away):
        one_pane = "thread"
    return render(request, "conversations/empty.html", context | {"one_pane": one_pane}, status=composer.status)


def _thread(
    request: PersonRequest,
    conversation: Conversation,
    composer: Composer | None = None,
    renaming: Mapping[str, str] | None = None,
) -> HttpResponse:
    """Show a conversation. `renaming`: a title that was refused, and why."""
    composer = composer or Composer.given(_message_url(conversation), request)
    turns = timeline(conversation, request.user, _turns_wanted(request))
    open_asked((card for turn in turns for card in turn.gates), request.GET)
    active = next((turn for turn in turns if turn.prompt.pk == conversation.active_prompt_id), None)
    context = {
        "conversation": conversation,
        "turns": turns,
        "has": {},  # a page that is loading has nothing yet
        "earlier": bool(turns) and _any_before(turns[0].prompt),
        "more_turns": len(turns) + TURNS_MOST,
        "dock": Dock.of(conversation, active, turns[-1].prompt if turns else None),
        "composer": composer,
        "renaming": renaming or {},
    }
    context |= _sidebar_context(request)
    with use_html_cache(conversation):
        page = render(request, "conversations/thread.html", context, status=400 if renaming else composer.status)
    return allow_own_frames(page)


def _any_before(prompt: Prompt) -> bool:
    """Whether there are visible turns before this one."""
    earlier = shown_prompts(prompt.conversation).filter(number__lt=prompt.number)
    return prompt.number > 1 and earlier.exists()


def _turns_wanted(request: HttpRequest) -> int:
    wanted = request.GET.get("turns", "")
    return max(int(wanted), 1) if wanted.isascii() and wanted.isdigit() and len(wanted) < 7 else TURNS_MOST


def _sidebar_context(request: PersonRequest) -> dict[str, Any]:
    """Return the context of the sidebar."""
    searched, asked = request.GET.get("q", "").strip(), request.GET
    return {"sidebar": sidebar(request.user, searched, archived="archived" in asked, runs="runs" in asked)}
