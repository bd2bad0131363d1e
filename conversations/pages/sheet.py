"""The sheet: every action of a conversation that waits, in full and in the order they run, decided together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.core.exceptions import BadRequest
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from conversations.approvals.many import TOGETHER_MOST, Verdict, Wanted, decide_many
from conversations.ids import row_ids
from conversations.models import Conversation
from conversations.pages.cards import TEXT_MOST
from conversations.pages.chat import PersonRequest
from conversations.shown.gate import Card, cards


@dataclass(frozen=True)
class Row:
    """One action of the sheet. `picked` is the verdict that is marked, `reason` what was typed with it."""

    card: Card
    picked: str = "leave"
    reason: str = ""
    problem: str = ""

    @property
    def open(self) -> bool:
        """Whether it gets a verdict here."""
        return self.card.may and self.card.decidable


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def sheet(request: PersonRequest, pk: int) -> HttpResponse:
    """GET shows what waits, each marked as `all` says (approve, reject); POST decides what got a verdict.

    Each is decided for itself. 404 where the conversation is not theirs; 409 with the sheet where one was refused.
    """
    mine = get_object_or_404(Conversation.objects.visible_to(request.user), pk=pk)
    if request.method != "POST":
        wanted = request.GET.get("all", "leave")
        rows = [Row(card, _marked(card, wanted)) for card in _waiting(mine, request)]
        return _page(request, mine, rows, more=_left_out(mine, rows))
    shown = _cards(mine, request)
    verdicts = decide_many(_wanted(request.POST, shown), request.user, "page")
    refused = {verdict.output_id: verdict for verdict in verdicts if verdict.refused}
    if not refused:
        return redirect(f"{mine.get_absolute_url()}#now")
    rows = [_after(card, request.POST, refused.get(card.row.pk)) for card in _cards(mine, request)]
    return _page(request, mine, rows, status=409)


def _waiting(conversation: Conversation, request: PersonRequest) -> list[Card]:
    waits = conversation.outputs.pending().select_related("conversation__owner")
    return cards(list(waits.order_by("prompt_id", "position")[:TOGETHER_MOST]), request.user)


def _left_out(conversation: Conversation, rows: Sequence[Row]) -> int:
    return conversation.outputs.pending().count() - len(rows)


def _cards(conversation: Conversation, request: PersonRequest) -> list[Card]:
    """Those that the sheet showed, as they are now. Raises BadRequest for what no sheet sends."""
    keys = row_ids(request.POST.getlist("id"))
    if len(keys) > TOGETHER_MOST:
        raise BadRequest(f"at most {TOGETHER_MOST} are decided together")
    found = conversation.outputs.gates().filter(pk__in=keys).select_related("conversation__owner")
    return cards(list(found.order_by("prompt_id", "position")), request.user)


def _marked(card: Card, wanted: str) -> str:
    """A question, and what became of an interrupted call, are not answered with the others."""
    return wanted if wanted in ("approve", "reject") and card.row.ask == "approve" else "leave"


def _wanted(posted: QueryDict, shown: Sequence[Card]) -> list[Wanted]:
    """The verdicts that were marked, in the order shown."""
    marked = [(card.row.pk, posted.get(f"decision_{card.row.pk}", "leave")) for card in shown]
    return [
        Wanted(key, decision, posted.get(f"digest_{key}", ""), _reason(posted, key) if decision == "reject" else "")
        for key, decision in marked
        if decision != "leave"
    ]


def _reason(posted: QueryDict, key: int) -> str:
    return posted.get(f"reason_{key}", "").replace("\r\n", "\n")[:TEXT_MOST]


def _after(card: Card, posted: QueryDict, verdict: Verdict | None) -> Row:
    key = card.row.pk
    problem = str(verdict.refused) if verdict else ""
    return Row(card, posted.get(f"decision_{key}", "leave"), _reason(posted, key), problem)


def _page(
    request: PersonRequest, conversation: Conversation, rows: Sequence[Row], more: int = 0, status: int = 200
) -> HttpResponse:
    open = [row for row in rows if row.open]
    context = {"conversation": conversation, "rows": rows, "open": open, "more": more, "reason_most": TEXT_MOST}
    return render(request, "conversations/sheet.html", context, status=status)
