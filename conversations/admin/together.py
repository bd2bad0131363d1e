"""Several approvals on one page: each shown whole, each with a verdict of its own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse

from conversations.admin.detail import REASON_MOST, decide_posted, loaded, person, told
from conversations.approvals.decisions import DecisionRefused
from conversations.approvals.permissions import may_decide
from conversations.models import Approval
from conversations.shown.gate import cards

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin

TOGETHER_MOST = 20
"""Approvals on one page: more are signed without being read."""


def together(request: HttpRequest, pages: ModelAdmin[Approval]) -> HttpResponse:
    """GET shows the approvals named by `ids`; POST decides those that got a verdict, each for itself."""
    if not pages.has_view_permission(request):
        raise PermissionDenied
    keys = _numbers(request.POST.getlist("id") if request.method == "POST" else request.GET.get("ids", "").split(","))
    if not keys or len(keys) > TOGETHER_MOST:
        messages.error(request, f"Select between one and {TOGETHER_MOST} approvals.")
        return redirect("admin:conversations_approval_changelist")
    if request.method == "POST":
        _decide_each(request, keys)
        return redirect(f"{reverse('admin:conversations_approval_together')}?ids={','.join(map(str, keys))}")
    shown = loaded(request, *keys)
    context: dict[str, Any] = {
        **pages.admin_site.each_context(request),
        "opts": pages.opts,
        "title": "Decide together",
        "items": [(card, card.decidable and may_decide(person(request), card.row)) for card in shown],
        "open": sum(card.decidable for card in shown),
        "reason_most": REASON_MOST,
    }
    return TemplateResponse(request, "admin/conversations/approval/together.html", context)


def _decide_each(request: HttpRequest, keys: Iterable[int]) -> None:
    """Decide in the order shown, and report each: one that is refused does not stop the others."""
    for key in keys:
        decision = request.POST.get(f"decision_{key}", "leave")
        if decision == "leave":
            continue
        try:
            output = decide_posted(request, key, decision, request.POST.get(f"digest_{key}", ""))
        except ObjectDoesNotExist:
            messages.error(request, f"Approval {key} is not there.")
        except DecisionRefused as refused:
            messages.error(request, f"Approval {key}: {refused}")
        else:
            messages.success(request, f"Approval {key}: {told(cards([output], request.user)[0])}")


def _numbers(texts: Iterable[str]) -> list[int]:
    """The numbers among these texts, each once."""
    return list(dict.fromkeys(int(text) for text in texts if text.isascii() and text.isdigit() and len(text) < 19))
