"""The approval sheet: all waiting actions of a conversation, in full and in the order they run, decided together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.core.exceptions import BadRequest
from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from agents.engine.decisions import Decision
from conversations.accounts.http import PersonRequest
from conversations.approvals.many import TOGETHER_MOST, DecisionOutcome, MixedRisk, WantedDecision, decide_many
from conversations.database.ids import row_ids
from conversations.display.bulk_form import LEAVE, BulkRow, marked_rows, mixed_risk_message, risks
from conversations.display.decision_form import TEXT_MOST
from conversations.display.gate import Card, cards
from conversations.models import Conversation, Output


@dataclass(frozen=True)
class BulkPost:
    """A submitted form, here or in the admin: the outcome of each decision, or the `problem` why none was made."""

    posted: QueryDict
    outcomes: Sequence[DecisionOutcome] = ()
    problem: str = ""

    @classmethod
    def decide(cls, posted: QueryDict, keys: Iterable[int], by: User, via: str) -> BulkPost:
        """Make the decisions marked for these outputs, in this order. A refusal does not stop the others."""
        marked = [(key, posted.get(f"decision_{key}", LEAVE)) for key in keys]
        wanted = [
            WantedDecision(
                key, word, posted.get(f"digest_{key}", ""), reason(posted, key) if word == Decision.REJECT else ""
            )
            for key, word in marked
            if word != LEAVE
        ]
        try:
            return cls(posted, decide_many(wanted, by, via))
        except MixedRisk as several:
            return cls(posted, problem=mixed_risk_message(several))

    @property
    def refused(self) -> dict[int, str]:
        """Why decisions were refused, by output."""
        return {each.output_id: str(each.refused) for each in self.outcomes if each.refused}

    @property
    def status(self) -> int:
        """The status of the answer: 400 if calls of several risks were to be approved, 409 if one was refused."""
        return 400 if self.problem else 409 if self.refused else 200

    def row(self, card: Card) -> BulkRow:
        """Return the row of this card, with what was marked and typed."""
        key = card.row.pk
        picked, problem = self.posted.get(f"decision_{key}", LEAVE), self.refused.get(key, "")
        return BulkRow(card, picked, reason(self.posted, key), problem)


def reason(posted: QueryDict, key: int | None = None) -> str:
    """Return the reason that was typed for this output, or for all of them."""
    return posted.get(f"reason_{key}", posted.get("reason", "")).replace("\r\n", "\n")[:TEXT_MOST]


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
        shown = _cards(request, mine.outputs.pending())
        found, risk = risks(shown), request.GET.get("risk")
        rows = marked_rows(shown, request.GET.get("all", LEAVE), found[0].name if len(found) == 1 else risk)
        more = mine.outputs.pending().count() - len(shown)
        return _page(request, mine, rows, BulkPost(request.POST), more)
    keys = row_ids(request.POST.getlist("id"))
    if len(keys) > TOGETHER_MOST:  # no sheet sends so many
        raise BadRequest(f"At most {TOGETHER_MOST} approvals can be decided together.")
    asked = mine.outputs.gates().filter(pk__in=keys)
    post = BulkPost.decide(request.POST, list(asked.values_list("pk", flat=True)), request.user, "page")
    if post.status == 200:
        return redirect(f"{mine.get_absolute_url()}#now")
    return _page(request, mine, [post.row(card) for card in _cards(request, asked)], post)


def _cards(request: PersonRequest, rows: QuerySet[Output]) -> list[Card]:
    """Return the first cards of these outputs, in the order in which the calls run."""
    ordered = rows.select_related("conversation__owner").order_by("prompt_id", "position")
    return cards(list(ordered[:TOGETHER_MOST]), request.user)


def _page(
    request: PersonRequest, conversation: Conversation, rows: Sequence[BulkRow], post: BulkPost, more: int = 0
) -> HttpResponse:
    context = {
        "conversation": conversation,
        "rows": rows,
        "open": [row for row in rows if row.open],
        "more": more,
        "reason_most": TEXT_MOST,
        "risks": risks(row.card for row in rows),
        "problem": post.problem,
        "address": reverse("sheet", args=[conversation.pk]),
    }
    return render(request, "conversations/sheet.html", context, status=post.status)
