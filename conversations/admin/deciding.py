"""The pages on which approvals are decided in the admin: one, or several at once, with the inbox's card and form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.debug import sensitive_post_parameters

from conversations.admin.base import ReadOnly
from conversations.approvals.many import TOGETHER_MOST, DecisionOutcome
from conversations.database.ids import row_id, row_ids
from conversations.display.card_place import on_page
from conversations.display.cards import cards
from conversations.display.faithful import plain
from conversations.display.gate import Card
from conversations.models import Output
from conversations.pages.approvals.frames import CardFrame, SheetFrame, serve_card, serve_sheet, summary

LIST = "admin:conversations_approval_changelist"


class DecidingPages(ReadOnly):
    """The pages of approvals on which they are decided."""

    @method_decorator(sensitive_post_parameters("password"))
    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show an approval, or decide it: see `serve_card`."""
        if not self.has_view_permission(request):
            raise PermissionDenied

        def show(card: Card, status: int) -> HttpResponse:
            return self.page(request, "approval/detail", {"title": plain(card.title), "card": card}, status)

        def decided(output: Output) -> HttpResponse:
            messages.success(request, summary(cards([output], request.user)[0]))
            return redirect(LIST)

        frame = CardFrame("admin", reverse(LIST), on_page(request.path), show, decided)
        return serve_card(request, row_id(object_id), frame)  # type: ignore[arg-type]

    @method_decorator(sensitive_post_parameters("password"))
    def together_view(self, request: HttpRequest) -> HttpResponse:
        """Show the approvals named by `ids`, or decide those that were marked: see `serve_sheet`."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        posted = request.method == "POST"
        keys = row_ids(request.POST.getlist("id") if posted else request.GET.get("ids", "").split(","))
        if not keys or len(keys) > TOGETHER_MOST:
            messages.error(request, f"Select between one and {TOGETHER_MOST} approvals.")
            return redirect(LIST)

        def show(form: dict[str, Any], status: int) -> HttpResponse:
            self._tell(request, form.get("made", ()))
            return self.page(request, "approval/together", {"title": "Decide together", **form}, status)

        def decided(outcomes: Sequence[DecisionOutcome]) -> HttpResponse:
            self._tell(request, outcomes)
            return redirect(address_of(keys))

        frame = SheetFrame("admin", reverse(LIST), address_of(keys), show, decided)
        return serve_sheet(request, keys, frame)  # type: ignore[arg-type]

    def _tell(self, request: HttpRequest, outcomes: Sequence[DecisionOutcome]) -> None:
        for outcome in outcomes:
            if outcome.output:
                decided = cards([outcome.output], request.user)[0]
                messages.success(request, f"Approval {outcome.output_id}: {summary(decided)}")


def address_of(keys: Sequence[int]) -> str:
    """Return the URL of the page that shows these approvals."""
    return f"{reverse('admin:conversations_approval_together')}?ids={','.join(map(str, keys))}"
