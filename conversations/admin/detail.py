"""The page of one approval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from django.contrib import messages
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.text import Truncator

from conversations.approvals.decisions import Conflict, DecisionRefused, decide
from conversations.approvals.permissions import may_decide, shown_to
from conversations.models import Approval, Output
from conversations.shown.faithful import inert
from conversations.shown.gate import Card, cards

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.contrib.auth.models import User

REASON_MOST = 4_000


def detail(request: HttpRequest, pages: ModelAdmin[Approval], object_id: str) -> HttpResponse:
    """GET shows the call whole; POST decides it by the digest that was shown.

    404 for what this person is not shown; 409 with its present state where it is not as it was; 403 for a person who
    may not decide it.
    """
    if not pages.has_view_permission(request):
        raise PermissionDenied
    if not (object_id.isascii() and object_id.isdigit() and loaded(request, int(object_id))):
        raise Http404
    if request.method != "POST":
        return _page(request, pages, int(object_id))
    try:
        output = decide_posted(
            request, int(object_id), request.POST.get("decision", ""), request.POST.get("digest", "")
        )
    except ObjectDoesNotExist as error:
        raise Http404 from error
    except DecisionRefused as refused:
        if refused.code == "forbidden":
            raise PermissionDenied(str(refused)) from refused
        messages.error(request, str(refused))
        return _page(request, pages, int(object_id), status=409 if isinstance(refused, Conflict) else 400)
    messages.success(request, told(cards([output], request.user)[0]))
    return redirect("admin:conversations_approval_changelist")


def decide_posted(request: HttpRequest, pk: int, decision: str, digest: str) -> Output:
    """Decide as the form says. Raises as `decide` does."""
    reason = request.POST.get("reason", "")[:REASON_MOST] if decision == "reject" else ""
    return decide(pk, person(request), decision, digest=digest, via="admin", reason=reason)


def person(request: HttpRequest) -> User:
    """Who is there: the admin lets nobody in who is not logged in."""
    return cast("User", request.user)


def told(card: Card) -> str:
    """What was decided of this call, in one line."""
    line = Truncator(card.call.first_line).chars(80)
    return inert(f"{card.verdict}: {card.call.title}{f' ({line})' if line else ''}.")


def loaded(request: HttpRequest, *keys: int) -> list[Card]:
    """The cards of these approvals, in the order in which they were asked."""
    mine = shown_to(request.user, Approval.objects.filter(pk__in=keys))
    found = mine.select_related("conversation__owner", "prompt__asked_by")
    return cards(list(found.order_by("asked_at", "pk")), request.user)


def _page(request: HttpRequest, pages: ModelAdmin[Approval], pk: int, status: int = 200) -> HttpResponse:
    shown = loaded(request, pk)
    if not shown:
        raise Http404
    context: dict[str, Any] = {
        **pages.admin_site.each_context(request),
        "opts": pages.opts,
        "title": inert(shown[0].title),
        "card": shown[0],
        "may_decide": may_decide(person(request), shown[0].row),
        "reason": request.POST.get("reason", ""),
        "reason_most": REASON_MOST,
    }
    return TemplateResponse(request, "admin/conversations/approval/detail.html", context, status=status)
