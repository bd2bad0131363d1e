"""The approval sheet: all waiting actions of a conversation, in full and in the order they run, decided together."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.decorators import login_required
from django.core.exceptions import BadRequest
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from agents.engine.decisions import Decision
from conversations.accounts.http import PersonRequest
from conversations.approvals.many import TOGETHER_MOST, DecisionOutcome, MixedRisk, WantedDecision, decide_many
from conversations.database.ids import row_ids
from conversations.display.bulk_form import LEAVE, BulkMarks, BulkRow, mixed_risk_message, risks
from conversations.display.decision_form import TEXT_MOST
from conversations.display.gate import Card, cards
from conversations.models import Conversation


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def sheet(request: PersonRequest, pk: int) -> HttpResponse:
    """Show what waits, each action marked as `all` says (approve, reject); on POST, decide the marked ones.

    If there are several risks, `risk` names the one whose actions are marked for approval. Each action is decided on
    its own. 404 if the conversation is not the user's, 409 with the sheet if a decision was refused, 400 if several
    risks were to be approved together.
    """
    mine = get_object_or_404(Conversation.objects.visible_to(request.user), pk=pk)
    if request.method != "POST":
        shown = _waiting(mine, request)
        found, risk = risks(shown), request.GET.get("risk")
        marks = BulkMarks(request.GET.get("all", LEAVE), found[0].name if len(found) == 1 else risk)
        rows = [BulkRow(card, marks.of(card)) for card in shown]
        return _page(request, mine, rows, more=_left_out(mine, rows))
    shown = _cards(mine, request)
    try:
        verdicts = decide_many(_wanted(request.POST, shown), request.user, "page")
    except MixedRisk as several:
        return _page(
            request,
            mine,
            [_after(card, request.POST, None) for card in shown],
            400,
            problem=mixed_risk_message(several),
        )
    refused = {verdict.output_id: verdict for verdict in verdicts if verdict.refused}
    if not refused:
        return redirect(f"{mine.get_absolute_url()}#now")
    rows = [_after(card, request.POST, refused.get(card.row.pk)) for card in _cards(mine, request)]
    return _page(request, mine, rows, 409)


def _waiting(conversation: Conversation, request: PersonRequest) -> list[Card]:
    waits = conversation.outputs.pending().select_related("conversation__owner")
    return cards(list(waits.order_by("prompt_id", "position")[:TOGETHER_MOST]), request.user)


def _left_out(conversation: Conversation, rows: Sequence[BulkRow]) -> int:
    return conversation.outputs.pending().count() - len(rows)


def _cards(conversation: Conversation, request: PersonRequest) -> list[Card]:
    """Return the cards that the sheet showed, as they are now. Raises BadRequest for ids that no sheet sends."""
    keys = row_ids(request.POST.getlist("id"))
    if len(keys) > TOGETHER_MOST:
        raise BadRequest(f"At most {TOGETHER_MOST} approvals can be decided together.")
    found = conversation.outputs.gates().filter(pk__in=keys).select_related("conversation__owner")
    return cards(list(found.order_by("prompt_id", "position")), request.user)


def _wanted(posted: QueryDict, shown: Sequence[Card]) -> list[WantedDecision]:
    """Return the marked decisions, in the order shown."""
    marked = [(card.row.pk, posted.get(f"decision_{card.row.pk}", LEAVE)) for card in shown]
    return [
        WantedDecision(
            key, decision, posted.get(f"digest_{key}", ""), _reason(posted, key) if decision == Decision.REJECT else ""
        )
        for key, decision in marked
        if decision != LEAVE
    ]


def _reason(posted: QueryDict, key: int) -> str:
    return posted.get(f"reason_{key}", "").replace("\r\n", "\n")[:TEXT_MOST]


def _after(card: Card, posted: QueryDict, verdict: DecisionOutcome | None) -> BulkRow:
    key = card.row.pk
    problem = str(verdict.refused) if verdict else ""
    return BulkRow(card, posted.get(f"decision_{key}", LEAVE), _reason(posted, key), problem)


def _page(
    request: PersonRequest,
    conversation: Conversation,
    rows: Sequence[BulkRow],
    status: int = 200,
    *,
    more: int = 0,
    problem: str = "",
) -> HttpResponse:
    open = [row for row in rows if row.open]
    context = {"conversation": conversation, "rows": rows, "open": open, "more": more, "reason_most": TEXT_MOST}
    context |= {
        "risks": risks(row.card for row in rows),
        "problem": problem,
        "address": reverse("sheet", args=[conversation.pk]),
    }
    return render(request, "conversations/sheet.html", context, status=status)
