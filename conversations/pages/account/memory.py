"""Memory: what the agent keeps of a person, as that person reads, writes, pins and forgets it, and switches it off.

Nobody else has a page of these, and to others their addresses do not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from agents.models import Memory
from agents.plugins.memory import keeping
from agents.plugins.memory.keeping import CannotKeep
from conversations.accounts.http import PersonRequest
from conversations.display.search import all_words, contains, words_of
from conversations.models import Conversation, Prompt
from conversations.pages.account.memory_form import MemoryForm
from conversations.pages.decorators import form_view
from conversations.pages.sidebar import sidebar

PAGE_ROWS = 25
"""Memories on one page."""
GONE = "The memory that you changed is not there any more. Add this text as a new one, or leave it."


@dataclass(frozen=True)
class MemoryRow:
    """A memory as it is listed. `said_in`: the conversation it comes from, if its person may open that; else None."""

    memory: Memory
    said_in: Conversation | None


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def memory(request: PersonRequest) -> HttpResponse:
    """List this person's memories, or those with all words of `?q=`; on POST, add one. 400 with the error at it."""
    if request.method != "POST":
        return _page(request, _new_form())
    form = _new_form(request.POST)
    if form.is_valid():
        try:
            saved = keeping.save(request.user.pk, **form.cleaned_data)
        except CannotKeep as error:
            form.add_error("text", str(error))
        else:
            pinned = " It is pinned now." if saved.pinned_now else ""
            said = f"Saved.{keeping.remark(saved.memory)}" if saved.new else f"That was saved already.{pinned}"
            messages.success(request, said)
            return redirect("memory")
    return _page(request, form, status=400)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def change_memory(request: PersonRequest, pk: int) -> HttpResponse:
    """Show one memory in a form; on POST, save it. 400 with the error at its field.

    404 if there is no such one (any more); what was typed for it then stands in the form for a new one.
    """
    try:
        return _change(request, pk)
    except Memory.DoesNotExist:
        if request.method != "POST":
            raise Http404 from None
    form = _new_form(request.POST)
    form.full_clean()
    form.add_error("text", GONE)
    return _page(request, form, status=404)


def _change(request: PersonRequest, pk: int) -> HttpResponse:
    found = keeping.of_person(request.user.pk).get(pk=pk)
    form = MemoryForm(request.POST or None, {"text": found.text, "pinned": found.pinned})
    if request.method == "POST" and form.is_valid():
        try:
            changed = keeping.change(request.user.pk, pk, **form.cleaned_data)
        except CannotKeep as error:
            form.add_error("text", str(error))
        else:
            messages.success(request, f"Saved.{keeping.remark(changed)}")
            return redirect("memory")
    context = {"memory": found, "form": form} | _frame(request)
    return render(request, "conversations/memory/change.html", context, status=400 if form.errors else 200)


@form_view
def pin_memory(request: PersonRequest, pk: int, pinned: bool) -> HttpResponse:
    """Pin a memory, or no longer."""
    try:
        keeping.pin(request.user.pk, pk, pinned)
    except Memory.DoesNotExist:
        raise Http404 from None
    except CannotKeep as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "Pinned." if pinned else "No longer pinned.")
    return redirect("memory")


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def forget_memory(request: PersonRequest, pk: int) -> HttpResponse:
    """Ask for confirmation; on POST, forget a memory for good."""
    found = get_object_or_404(keeping.of_person(request.user.pk), pk=pk)
    if request.method == "POST":
        keeping.forget(request.user.pk, pk)
        messages.success(request, "Forgotten. Your agent is not told of it again.")
        return redirect("memory")
    return render(request, "conversations/memory/forget.html", {"memory": found} | _frame(request))


@form_view
def switch_memory(request: PersonRequest, on: bool) -> HttpResponse:
    """Switch memory on or off. What is kept stays."""
    try:
        keeping.switch(request.user.pk, on)
    except CannotKeep as error:
        messages.error(request, str(error))
    else:
        messages.success(request, f"Memory was switched {'on' if on else 'off'}.")
    return redirect("memory")


def _new_form(data: Any = None) -> MemoryForm:
    return MemoryForm(data, label="Something to remember")


def _page(request: PersonRequest, form: MemoryForm, status: int = 200) -> HttpResponse:
    mine = keeping.of_person(request.user.pk)
    words = words_of(request.GET.get("q", ""))
    found = mine.filter(all_words(words, partial(contains, "text"))) if words else mine
    page = Paginator(found, PAGE_ROWS).get_page(request.GET.get("page"))
    context = {
        "form": form,
        "rows": _rows(request, page),
        "page": page,
        "q": " ".join(words),
        "there": mine.count(),
        "most": Memory.MOST,
        "on": keeping.is_on(request.user.pk),
        "offered": keeping.is_offered(),
    }
    return render(request, "conversations/memory/list.html", context | _frame(request), status=status)


def _rows(request: PersonRequest, page: Page[Memory]) -> list[MemoryRow]:
    """Return the memories of a page, each with the conversation it comes from."""
    turns = [each.prompt for each in page if each.prompt]
    visible = Conversation.objects.visible_to(request.user).listed()
    prompts = Prompt.objects.filter(pk__in=turns, conversation__in=visible).select_related("conversation")
    said_in = {prompt.pk: prompt.conversation for prompt in prompts}
    return [MemoryRow(each, said_in.get(each.prompt or 0)) for each in page]


def _frame(request: PersonRequest) -> dict[str, Any]:
    return {"place": "account", "sidebar": sidebar(request.user)}
