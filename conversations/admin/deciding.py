"""The pages on which approvals are decided: one, or several at once, each shown in full and decided by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.text import Truncator

from agents.engine.decisions import Decision
from conversations.admin.base import ReadOnly, person
from conversations.approvals.decisions import Conflict, DecisionRefused
from conversations.approvals.many import TOGETHER_MOST
from conversations.approvals.permissions import shown_to
from conversations.database.ids import row_ids
from conversations.display.bulk_form import LEAVE, BulkRow, marked_rows, risks
from conversations.display.decision_form import TEXT_MOST, RowsChanged, decide_posted, open_card
from conversations.display.faithful import inert, plain
from conversations.display.gate import Card, cards
from conversations.models import Approval, Output
from conversations.pages.approvals.card import nothing_to_decide
from conversations.pages.approvals.sheet import BulkPost, reason


class DecidingPages(ReadOnly):
    """The pages of approvals on which they are decided."""

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """GET shows the call in full; POST decides it by the digest that was shown.

        `?as=edit` shows its input as a form. 404 if this person may not see it; 409 with its present state if it has
        changed, and if nobody was asked about an output of their own; 400 with what was typed if that is invalid; 403
        if this person may not decide.
        """
        if not self.has_view_permission(request):
            raise PermissionDenied
        found = _loaded(request, *row_ids([object_id]))
        if not found and request.method == "POST" and _never_asked(request, *row_ids([object_id])):
            return nothing_to_decide(request, reverse("admin:conversations_approval_changelist"))
        if not found:
            raise Http404
        shown = found[0]
        if request.method != "POST":
            open_card(shown, request.GET.get("as", "plain"))
            return self._one(request, shown)
        try:
            output = decide_posted(shown, person(request), request.POST, "admin")
        except ObjectDoesNotExist as error:
            raise Http404 from error
        except DecisionRefused as refused:
            if refused.code == "forbidden":
                raise PermissionDenied(str(refused)) from refused
            return self._refused(request, shown, refused)
        messages.success(request, _summary(cards([output], request.user)[0]))
        return redirect("admin:conversations_approval_changelist")

    def _refused(self, request: HttpRequest, shown: Card, refused: DecisionRefused) -> HttpResponse:
        """Show the approval as it is now, with what was typed; 409 if it has changed since it was shown."""
        now = _loaded(request, shown.row.pk)
        if not now:
            raise Http404
        now[0].opened = shown.opened
        if not now[0].pending:
            messages.error(request, str(refused))
        if isinstance(refused, RowsChanged):
            return self._one(request, now[0])
        return self._one(request, now[0], status=409 if isinstance(refused, Conflict) else 400)

    def _one(self, request: HttpRequest, shown: Card, status: int = 200) -> HttpResponse:
        context = {"title": plain(shown.title), "card": shown, "reason_most": TEXT_MOST}
        return self.page(request, "approval/detail", context, status)

    def together_view(self, request: HttpRequest) -> HttpResponse:
        """GET shows the approvals named by `ids`; POST decides those that were marked, each by itself.

        409 with what was marked and typed if one was refused; 400 if calls of several risks were marked to be approved.
        """
        if not self.has_view_permission(request):
            raise PermissionDenied
        posted = request.method == "POST"
        keys = row_ids(request.POST.getlist("id") if posted else request.GET.get("ids", "").split(","))
        if not keys or len(keys) > TOGETHER_MOST:
            messages.error(request, f"Select between one and {TOGETHER_MOST} approvals.")
            return redirect("admin:conversations_approval_changelist")
        if not posted:
            word = Decision.APPROVE if "risk" in request.GET else LEAVE
            return self._several(request, keys, marked_rows(_loaded(request, *keys), word, request.GET.get("risk")))
        post = BulkPost.decide(request.POST, keys, _loaded(request, *keys), person(request), "admin")
        for outcome in post.outcomes:
            if outcome.output:
                decided = cards([outcome.output], request.user)[0]
                messages.success(request, f"Approval {outcome.output_id}: {_summary(decided)}")
        if post.status == 200:
            return redirect(address_of(keys))
        if post.problem:
            messages.error(request, post.problem)
        found = _loaded(request, *keys)
        shown = {card.row.pk for card in found}
        for key, why in post.refused.items():
            if key not in shown:  # this person may not see it
                messages.error(request, f"Approval {key}: {why}")
        return self._several(request, keys, [post.row(card) for card in found], status=post.status)

    def _several(
        self, request: HttpRequest, keys: Sequence[int], rows: Sequence[BulkRow], status: int = 200
    ) -> HttpResponse:
        context = {
            "title": "Decide together",
            "address": address_of(keys),  # where a refused form can be reloaded
            "rows": rows,
            "risks": risks(row.card for row in rows),
            "open": sum(row.open for row in rows),
            "refused": status != 200,
            "reason": reason(request.POST),
            "reason_most": TEXT_MOST,
        }
        return self.page(request, "approval/together", context, status)


def _loaded(request: HttpRequest, *keys: int) -> list[Card]:
    """Return the cards of these approvals that the person may see, in the order in which they were asked."""
    mine = shown_to(request.user, Approval.objects.filter(pk__in=keys))
    found = mine.select_related("conversation__owner", "prompt__asked_by")
    return cards(list(found.order_by("asked_at", "pk")), request.user, decided=True)


def _never_asked(request: HttpRequest, *keys: int) -> bool:
    """Whether these are outputs of the person's own conversations that nobody was asked about."""
    return Output.objects.visible_to(request.user).filter(pk__in=keys, gate="").exists()


def _summary(card: Card) -> str:
    """Return what was decided about this call, in one line."""
    line = Truncator(card.first_line).chars(80)
    what = f"{card.title}{f' ({line})' if line else ''}"
    return inert(
        f"Edited: {what}. Somebody else has to approve it now." if card.pending else f"{card.verdict}: {what}."
    )


def address_of(keys: Sequence[int]) -> str:
    """Return the URL of the page that shows these approvals."""
    return f"{reverse('admin:conversations_approval_together')}?ids={','.join(map(str, keys))}"
