"""The page of one approval."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from django.contrib import messages
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.text import Truncator

from conversations.admin.base import ListPages
from conversations.approvals.decisions import Conflict, DecisionRefused
from conversations.approvals.permissions import shown_to
from conversations.database.ids import row_ids
from conversations.display.decision_form import TEXT_MOST, decide_posted, open_card
from conversations.display.faithful import inert
from conversations.display.gate import Card, cards
from conversations.models import Approval

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def detail(request: HttpRequest, pages: ListPages, object_id: str) -> HttpResponse:
    """GET shows the call in full; POST decides it by the digest that was shown.

    `?as=edit` shows its input as a form. 404 if this person may not see it; 409 with its present state if it has
    changed; 400 with what was typed if that is invalid; 403 if this person may not decide it.
    """
    if not pages.has_view_permission(request):
        raise PermissionDenied
    found = loaded(request, *row_ids([object_id]))
    if not found:
        raise Http404
    shown = found[0]
    if request.method != "POST":
        open_card(shown, request.GET.get("as", "plain"))
        return _page(request, pages, shown)
    try:
        output = decide_posted(shown, person(request), request.POST, "admin")
    except ObjectDoesNotExist as error:
        raise Http404 from error
    except DecisionRefused as refused:
        if refused.code == "forbidden":
            raise PermissionDenied(str(refused)) from refused
        return _refused(request, pages, shown, refused)
    messages.success(request, summary(cards([output], request.user)[0]))
    return redirect("admin:conversations_approval_changelist")


def person(request: HttpRequest) -> User:
    """Return the user: everybody in the admin is signed in."""
    return cast("User", request.user)


def summary(card: Card) -> str:
    """Return what was decided about this call, in one line."""
    line = Truncator(card.call.first_line).chars(80)
    return inert(f"{card.verdict}: {card.call.title}{f' ({line})' if line else ''}.")


def loaded(request: HttpRequest, *keys: int) -> list[Card]:
    """Return the cards of these approvals that the person may see, in the order in which they were asked."""
    mine = shown_to(request.user, Approval.objects.filter(pk__in=keys))
    found = mine.select_related("conversation__owner", "prompt__asked_by")
    return cards(list(found.order_by("asked_at", "pk")), request.user)


def _refused(request: HttpRequest, pages: ListPages, shown: Card, refused: DecisionRefused) -> HttpResponse:
    """Show the approval as it is now, with what was typed; 409 if it has changed since it was shown."""
    now = loaded(request, shown.row.pk)
    if not now:
        raise Http404
    if now[0].pending:
        now[0].opened = shown.opened
    else:
        messages.error(request, str(refused))
    return _page(request, pages, now[0], status=409 if isinstance(refused, Conflict) else 400)


def _page(request: HttpRequest, pages: ListPages, shown: Card, status: int = 200) -> HttpResponse:
    context = {
        "title": inert(shown.title),
        "card": shown,
        "reason_most": TEXT_MOST,
    }
    return pages.page(request, "approval/detail", context, status)
