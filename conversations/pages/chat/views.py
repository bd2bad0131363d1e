"""The chat: the list of conversations, one conversation, and what people do there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET
from django_htmx.http import HttpResponseClientRedirect

from conversations.accounts.http import PersonRequest
from conversations.database.disk import DiskFull
from conversations.display.decision_form import open_asked
from conversations.files.uploads import BadFile
from conversations.models import Conversation, Prompt
from conversations.pages.chat.composer import Composer
from conversations.pages.chat.dock import Dock
from conversations.pages.chat.done import done
from conversations.pages.chat.forms import Message
from conversations.pages.chat.gone import erased_by, gone
from conversations.pages.chat.live import answer_html, fragment, list_html, stands_at
from conversations.pages.posting import posted
from conversations.pages.sidebar import sidebar
from conversations.pages.timeline.turns import TURNS_MOST, shown_prompts, timeline
from conversations.prompts.idempotency import KeyReused
from conversations.prompts.killswitch import SiteStopped
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
from conversations.usage.quotas import OverQuota

NOT_NOW: dict[type[Exception], int] = {
    Deactivated: 403,
    TurnInProgress: 409,
    SiteStopped: 409,
    OverQuota: 429,
    DiskFull: 507,
}
"""Why a message that is well formed is not taken, and the status that says so; its text stays in the field."""
REFUSED: tuple[type[Exception], ...] = (BadInput, BadFile, *NOT_NOW)
"""Why no turn begins."""
STARTS_NOTHING: tuple[type[Exception], ...] = (KeyReused, *REFUSED)
"""The same, where a new conversation was to begin."""
DELETED = "This conversation was deleted: begin a new one."
ARRIVED = "A message that this page sent before has arrived after all, see its conversation. This one was not sent."


@login_required
@require_GET
def home(request: PersonRequest) -> HttpResponse:
    """The list and an empty conversation; a phone shows the list alone while there is one."""
    return _empty(request, Composer(reverse("start")), one_pane="list")


@login_required
@require_GET
def listed(request: PersonRequest) -> HttpResponse:
    """The list alone, for who types into the search field."""
    return render(request, "conversations/list.html", _frame(request))


@login_required
@require_GET
def new(request: PersonRequest) -> HttpResponse:
    """An empty conversation; its first message starts it."""
    return _empty(request, Composer(reverse("start")), one_pane="thread")


@posted
def start(request: PersonRequest) -> HttpResponse:
    """Start a conversation by its first message. 400 with the text kept where the message cannot be taken."""
    message = Message(request.POST, request.FILES)
    try:
        prompt = begin_conversation(
            request.user, message.checked(), tier=message.tier, key=message.key, files=message.uploads()
        )
    except STARTS_NOTHING as error:
        kept = _kept(reverse("start"), message, ARRIVED if isinstance(error, KeyReused) else error)
        status = NOT_NOW.get(type(error), 400)
        if request.htmx:
            return HttpResponse(answer_html(kept, fresh=isinstance(error, KeyReused)), status=status)
        return _empty(request, kept, one_pane="thread", status=status)
    page = f"{prompt.conversation.get_absolute_url()}#now"
    return HttpResponseClientRedirect(page) if request.htmx else redirect(page)


@login_required
@require_GET
def conversation(request: PersonRequest, pk: int) -> HttpResponse:
    """One conversation; 410 for who deleted it."""
    try:
        found = _conversation(request, pk)
    except Http404:
        return gone(request, request.user, pk)
    return _thread(request, found)


@posted
def say(request: PersonRequest, pk: int) -> HttpResponse:
    """Send a message. 400 where it cannot be taken, 409 or 429 where not now, 410 where the reader deleted what it is
    said in; the text is kept in the field.
    """
    message = Message(request.POST, request.FILES)
    try:
        found = _conversation(request, pk)
        start_prompt(
            found, request.user, message.checked(), tier=message.tier, key=message.key, files=message.uploads()
        )
    except (Http404, ObjectDoesNotExist):  # also where it went at this moment
        return _gone(request, pk, message)
    except KeyReused:
        kept = _kept(_action(found), message, ARRIVED)
        return _answer(request, found, kept, 409, fresh=True)
    except REFUSED as error:
        return _answer(request, found, _kept(_action(found), message, error), NOT_NOW.get(type(error), 400))
    return _answer(request, found)


@posted
def stop(request: PersonRequest, pk: int) -> HttpResponse:
    """Stop a turn. What was typed meanwhile stays in the field."""
    prompt, message = _prompt(request, pk), Message(request.POST, request.FILES)
    try:
        cancel_prompt(prompt.pk, request.user)
        found = _conversation(request, prompt.conversation_id)
    except (Http404, ObjectDoesNotExist):
        return _gone(request, prompt.conversation_id, message)
    typed = Composer(_action(found), message.text, message.tier) if message.text.strip() else None
    return _answer(request, found, typed)


@posted
def go_on(request: PersonRequest, pk: int) -> HttpResponse:
    """Go on from where a turn failed or was stopped: a new turn without input (R5). 409 where that cannot be."""
    return _anew(request, pk, continue_prompt)


@posted
def again(request: PersonRequest, pk: int) -> HttpResponse:
    """Ask the message of a turn again: a new turn, before which the old one is collapsed. 409 where that cannot be."""
    return _anew(request, pk, repeat_prompt)


def _anew(request: PersonRequest, pk: int, start: Callable[[int, User], Prompt]) -> HttpResponse:
    prompt = _prompt(request, pk)
    try:
        found = _conversation(request, prompt.conversation_id)
        start(prompt.pk, request.user)
    except (Http404, ObjectDoesNotExist):
        return _gone(request, prompt.conversation_id, Message(request.POST))
    except REFUSED as error:
        return _answer(request, found, Composer(_action(found), problem=str(error)), NOT_NOW.get(type(error), 409))
    return _answer(request, found)


@posted
def name(request: PersonRequest, pk: int) -> HttpResponse:
    """Rename a conversation. 400, with the title as it was typed, where it cannot be taken."""
    found, title = _conversation(request, pk), request.POST.get("title", "")
    try:
        rename(found, title)
    except BadTitle as error:
        renaming = {"text": title, "problem": str(error)}
        if not request.htmx:
            return _thread(request, found, status=400, renaming=renaming)
        context = {"conversation": found, "renaming": renaming, "oob": True}
        return render(request, "conversations/dock/menu.html", context, status=400)
    if request.htmx:
        return HttpResponse(fragment(request.user, found, stands_at(request)))
    return redirect(found)


def _conversation(request: PersonRequest, pk: int) -> Conversation:
    """The conversation, for its reader. Raises Http404 where it is not theirs."""
    mine = Conversation.objects.visible_to(request.user)
    return get_object_or_404(mine.select_related("owner", "active_prompt"), pk=pk)


def _prompt(request: PersonRequest, pk: int) -> Prompt:
    """The turn, for its reader. Raises Http404 where it is not theirs."""
    return get_object_or_404(Prompt.objects.visible_to(request.user), pk=pk)


def _gone(request: PersonRequest, pk: int, message: Message) -> HttpResponse:
    """What who deleted this conversation is answered after a form: 410, and the text is kept, for a new one.

    Raises Http404 for everybody else.
    """
    erased_by(request.user, pk)
    kept = _kept(reverse("start"), message, DELETED)
    if request.htmx:
        return HttpResponse(list_html(request.user.pk) + answer_html(kept, fresh=False), status=410)
    return _empty(request, kept, one_pane="thread", status=410)


def _kept(action: str, message: Message, problem: Exception | str) -> Composer:
    return Composer(action, message.text, message.tier, str(problem), message.brought)


def _action(conversation: Conversation) -> str:
    return reverse("say", args=[conversation.pk])


def _answer(
    request: PersonRequest,
    conversation: Conversation,
    composer: Composer | None = None,
    status: int = 200,
    *,
    fresh: bool = False,
) -> HttpResponse:
    """After a form: to a page that is open what changed on it, else the page.

    `composer`: what is to stay in it; `fresh`: under a key of its own, because that of the page stands for another.
    """
    if request.htmx:
        shown = composer or Composer(_action(conversation))
        html = fragment(request.user, conversation, stands_at(request))
        return HttpResponse(html + answer_html(shown, fresh=fresh or composer is None), status=status)
    if composer is None:
        return redirect(f"{conversation.get_absolute_url()}#now")
    return _thread(request, _conversation(request, conversation.pk), composer, status)


def _empty(request: PersonRequest, composer: Composer, *, one_pane: str, status: int = 200) -> HttpResponse:
    context = {"composer": composer, "done": done(request)} | _frame(request)
    beside = context["sidebar"]
    if not (beside.groups or beside.stays or beside.away):
        one_pane = "thread"
    return render(request, "conversations/empty.html", context | {"one_pane": one_pane}, status=status)


def _thread(
    request: PersonRequest,
    conversation: Conversation,
    composer: Composer | None = None,
    status: int = 200,
    *,
    renaming: Mapping[str, str] | None = None,
) -> HttpResponse:
    turns = timeline(conversation, request.user, _turns_wanted(request))
    open_asked((card for turn in turns for card in turn.waiting), request.GET)
    active = next((turn for turn in turns if turn.prompt.pk == conversation.active_prompt_id), None)
    context = {
        "conversation": conversation,
        "turns": turns,
        "has": {},  # a page that is loaded has nothing yet
        "earlier": bool(turns) and _any_before(turns[0].prompt),
        "more_turns": len(turns) + TURNS_MOST,
        "dock": Dock.of(conversation, active, turns[-1].prompt if turns else None),
        "composer": composer or Composer(_action(conversation)),
        "renaming": renaming or {},
    }
    return render(request, "conversations/thread.html", context | _frame(request), status=status)


def _any_before(prompt: Prompt) -> bool:
    """Whether turns that are shown came before this one."""
    earlier = shown_prompts(prompt.conversation).filter(number__lt=prompt.number)
    return prompt.number > 1 and earlier.exists()


def _turns_wanted(request: HttpRequest) -> int:
    wanted = request.GET.get("turns", "")
    return max(int(wanted), 1) if wanted.isascii() and wanted.isdigit() and len(wanted) < 7 else TURNS_MOST


def _frame(request: PersonRequest) -> dict[str, Any]:
    """What stands beside every page: the list."""
    searched, archived = request.GET.get("q", "").strip(), "archived" in request.GET
    return {"sidebar": sidebar(request.user, searched, archived=archived)}
