"""The approval sheet: all waiting actions of a conversation, in full and in the order they run, decided together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

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
from conversations.approvals.decisions import DecisionRefused
from conversations.approvals.many import TOGETHER_MOST, DecisionOutcome, MixedRisk, WantedDecision, decide_many
from conversations.database.ids import row_ids
from conversations.display.bulk_form import LEAVE, BulkRow, marked_rows, mixed_risk_message, reply_of, risks
from conversations.display.decision_form import TEXT_MOST, check_typed
from conversations.display.gate import Card, cards
from conversations.display.question import QuestionForm
from conversations.models import Conversation, Output
from conversations.pages.approvals.card import nothing_to_decide

ROWS_CHANGED = "Nothing was decided yet: a row was added or removed."
FOR_LATER = "Your answer is marked for later. Mark it as the answer, or remove what you typed."


@dataclass(frozen=True)
class BulkPost:
    """A submitted form, here or in the admin: the outcome of each decision, or the `problem` why none was made.

    `replies` are the forms of the questions in it, by output.
    """

    posted: QueryDict
    outcomes: Sequence[DecisionOutcome] = ()
    problem: str = ""
    replies: Mapping[int, QuestionForm] = field(default_factory=dict)

    @classmethod
    def decide(cls, posted: QueryDict, keys: Iterable[int], shown: Iterable[Card], by: User, via: str) -> BulkPost:
        """Make the decisions marked for these outputs, in this order. A refusal does not stop the others.

        `shown` are the cards of those that the person sees: what their forms hold depends on what they ask.
        """
        cards = {card.row.pk: card for card in shown}
        replies = {key: form for key, card in cards.items() if (form := reply_of(card, posted))}
        if any(form.kind == "form" and form.form.adds_rows for form in replies.values()):
            return cls(posted, problem=ROWS_CHANGED, replies=replies)
        wanted, wrong = [], []
        for key in keys:
            word, digest = posted.get(f"decision_{key}", LEAVE), posted.get(f"digest_{key}", "")
            try:
                if key in replies and word in (Decision.ANSWER, LEAVE):
                    wanted += _answers(cards[key], replies[key], word, digest)
                elif word != LEAVE:
                    why = reason(posted, key) if word == Decision.REJECT else ""
                    wanted.append(WantedDecision(key, word, digest, why))
            except DecisionRefused as refused:
                wrong.append(DecisionOutcome(key, refused=refused))
        try:
            made = decide_many(wanted, by, via)
        except MixedRisk as several:
            return cls(posted, problem=mixed_risk_message(several, cards.values()), replies=replies)
        for outcome in made:
            if outcome.refused and (form := replies.get(outcome.output_id)):
                form.stale = outcome.refused.code == "changed"
                form.errors.update(outcome.refused.details if outcome.refused.code == "invalid_answer" else {})
        return cls(posted, [*wrong, *made], replies=replies)

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
        reply = self.replies.get(key)
        stale = reply and card.pending and (reply.question != card.question or reply.stale)
        unused = reply if reply and (stale or (not card.pending and reply.touched)) else None
        return BulkRow(card, picked, reason(self.posted, key), problem, reply_of(card) if stale else reply, unused)


def reason(posted: QueryDict, key: int | None = None) -> str:
    """Return the reason that was typed for this output, or for all of them."""
    return posted.get(f"reason_{key}", posted.get("reason", "")).replace("\r\n", "\n")[:TEXT_MOST]


def _answers(card: Card, reply: QuestionForm, word: str, digest: str) -> list[WantedDecision]:
    """Return the answer that was typed; none if the question is left for later. Raises DecisionRefused."""
    if word == LEAVE:
        if card.pending and reply.touched:  # without a script, nothing marks what is typed
            raise DecisionRefused("invalid_answer", FOR_LATER)
        return []
    answer = reply.answer()
    check_typed(card, reply, digest)
    return [WantedDecision(card.row.pk, word, digest, answer=answer)]


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
    if mine.outputs.filter(pk__in=keys, gate="").exists():
        return nothing_to_decide(request, mine.get_absolute_url())
    asked = mine.outputs.gates().filter(pk__in=keys)
    shown = _cards(request, asked)
    post = BulkPost.decide(request.POST, [card.row.pk for card in shown], shown, request.user, "page")
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
