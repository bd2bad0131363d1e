"""Several approvals on one page: each is shown in full, and decided by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse

from agents.engine.decisions import Decision
from conversations.admin.detail import loaded, person, summary
from conversations.approvals.many import TOGETHER_MOST, DecisionOutcome, MixedRisk, WantedDecision, decide_many
from conversations.database.ids import row_ids
from conversations.display.bulk_form import LEAVE, BulkMarks, BulkRow, mixed_risk_message, risks
from conversations.display.decision_form import TEXT_MOST
from conversations.display.gate import Card, cards
from conversations.models import Approval

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin


def together(request: HttpRequest, pages: ModelAdmin[Approval]) -> HttpResponse:
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
    try:
        verdicts = _decided(request, keys)
    except MixedRisk as several:
        messages.error(request, mixed_risk_message(several))
        return _page(request, pages, keys, [_after(request, card, "") for card in loaded(request, *keys)], status=400)
    refused = {verdict.output_id: str(verdict.refused) for verdict in verdicts if verdict.refused}
    if not refused:
        return redirect(_address(keys))
    rows = [_after(request, card, refused.pop(card.row.pk, "")) for card in loaded(request, *keys)]
    for key, why in refused.items():  # approvals that this person may not see
        messages.error(request, f"Approval {key}: {why}")
    return _page(request, pages, keys, rows, status=409)


def _decided(request: HttpRequest, keys: Sequence[int]) -> list[DecisionOutcome]:
    """Decide in the order shown, and report each. A refusal does not stop the others."""
    marked = [(key, request.POST.get(f"decision_{key}", LEAVE)) for key in keys]
    wanted = [
        WantedDecision(
            key,
            decision,
            request.POST.get(f"digest_{key}", ""),
            _reason(request) if decision == Decision.REJECT else "",
        )
        for key, decision in marked
        if decision != LEAVE
    ]
    verdicts = decide_many(wanted, person(request), "admin")
    for verdict in verdicts:
        if verdict.output:
            decided = cards([verdict.output], request.user)[0]
            messages.success(request, f"Approval {verdict.output_id}: {summary(decided)}")
    return verdicts


def _reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "").replace("\r\n", "\n")[:TEXT_MOST]


def _after(request: HttpRequest, card: Card, problem: str) -> BulkRow:
    return BulkRow(card, request.POST.get(f"decision_{card.row.pk}", LEAVE), problem=problem)


def _address(keys: Sequence[int]) -> str:
    return f"{reverse('admin:conversations_approval_together')}?ids={','.join(map(str, keys))}"


def _page(
    request: HttpRequest, pages: ModelAdmin[Approval], keys: Sequence[int], rows: Sequence[BulkRow], status: int = 200
) -> HttpResponse:
    context: dict[str, Any] = {
        **pages.admin_site.each_context(request),
        "opts": pages.opts,
        "title": "Decide together",
        "address": _address(keys),  # where a refused form can be reloaded
        "rows": rows,
        "risks": risks(row.card for row in rows),
        "open": sum(row.card.decidable for row in rows),
        "refused": status != 200,
        "reason": _reason(request),
        "reason_most": TEXT_MOST,
    }
    return TemplateResponse(request, "admin/conversations/approval/together.html", context, status=status)
