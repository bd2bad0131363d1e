"""Several approvals on one page: each is shown in full, and decided by itself."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from agents.engine.decisions import Decision
from conversations.admin.base import ListPages
from conversations.admin.detail import loaded, person, summary
from conversations.approvals.many import TOGETHER_MOST
from conversations.database.ids import row_ids
from conversations.display.bulk_form import LEAVE, BulkMarks, BulkRow, risks
from conversations.display.decision_form import TEXT_MOST
from conversations.display.gate import cards
from conversations.pages.approvals.sheet import BulkPost, reason


def together(request: HttpRequest, pages: ListPages) -> HttpResponse:
    """GET shows the approvals named by `ids`; POST decides those that were marked, each by itself.

    409 with what was marked and typed if one was refused; 400 if calls of several risks were marked to be approved.
    """
    if not pages.has_view_permission(request):
        raise PermissionDenied
    keys = row_ids(request.POST.getlist("id") if request.method == "POST" else request.GET.get("ids", "").split(","))
    if not keys or len(keys) > TOGETHER_MOST:
        messages.error(request, f"Select between one and {TOGETHER_MOST} approvals.")
        return redirect("admin:conversations_approval_changelist")
    if request.method != "POST":
        marks = BulkMarks(Decision.APPROVE if "risk" in request.GET else LEAVE, request.GET.get("risk"))
        return _page(request, pages, keys, [BulkRow(card, marks.of(card)) for card in loaded(request, *keys)])
    post = BulkPost.decide(request.POST, keys, person(request), "admin")
    for outcome in post.outcomes:
        if outcome.output:
            decided = cards([outcome.output], request.user)[0]
            messages.success(request, f"Approval {outcome.output_id}: {summary(decided)}")
    if post.status == 200:
        return redirect(_address(keys))
    if post.problem:
        messages.error(request, post.problem)
    found = loaded(request, *keys)
    shown = {card.row.pk for card in found}
    for key, why in post.refused.items():
        if key not in shown:  # this person may not see it
            messages.error(request, f"Approval {key}: {why}")
    return _page(request, pages, keys, [post.row(card) for card in found], status=post.status)


def _address(keys: Sequence[int]) -> str:
    return f"{reverse('admin:conversations_approval_together')}?ids={','.join(map(str, keys))}"


def _page(
    request: HttpRequest, pages: ListPages, keys: Sequence[int], rows: Sequence[BulkRow], status: int = 200
) -> HttpResponse:
    context = {
        "title": "Decide together",
        "address": _address(keys),  # where a refused form can be reloaded
        "rows": rows,
        "risks": risks(row.card for row in rows),
        "open": sum(row.card.decidable for row in rows),
        "refused": status != 200,
        "reason": reason(request.POST),
        "reason_most": TEXT_MOST,
    }
    return pages.page(request, "approval/together", context, status)
