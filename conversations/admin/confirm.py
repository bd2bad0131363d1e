"""The confirmation page of irreversible actions: what happens, what goes with it, and why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from agents.engine.ledger import valid_text
from conversations.admin.base import ListPages
from conversations.display.faithful import inert
from conversations.erasure.conversations import REASON_MOST


@dataclass(frozen=True)
class Question:
    """The question of a confirmation page, with its consequences and the page to go back to.

    `do` is called with the reason, and returns the message to show. `refusals`: the exceptions by which it refuses.
    """

    title: str
    words: str
    consequences: Sequence[str]
    button: str
    back: str
    do: Callable[[str], str]
    refusals: tuple[type[Exception], ...]


def confirm(request: HttpRequest, pages: ListPages, question: Question) -> HttpResponse:
    """GET asks; POST does it. 400 without a reason, 409 if it is refused; what was typed is kept."""
    if request.method != "POST":
        return _page(request, pages, question)
    reason = valid_text(request.POST.get("reason", "")).strip()[:REASON_MOST]
    if not reason:
        return _page(request, pages, question, "Enter a reason.", status=400)
    try:
        done = question.do(reason)
    except question.refusals as refused:
        return _page(request, pages, question, str(refused), status=409)
    messages.success(request, inert(done))
    return redirect(question.back)


def _page(
    request: HttpRequest, pages: ListPages, question: Question, problem: str = "", status: int = 200
) -> HttpResponse:
    context = {
        "title": inert(question.title),
        "question": question,
        "problem": problem,
        "reason": request.POST.get("reason", ""),
        "reason_most": REASON_MOST,
    }
    return pages.page(request, "confirm", context, status)
