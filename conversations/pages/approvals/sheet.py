"""The approval sheet: all waiting actions of a conversation, in full and in the order they run, decided together."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.decorators import login_required
from django.core.exceptions import BadRequest
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from conversations.accounts.http import PersonRequest
from conversations.approvals.many import TOGETHER_MOST
from conversations.database.ids import row_ids
from conversations.display.bulk_form import LEAVE, BulkRow, marked_rows, risks
from conversations.display.cards import cards
from conversations.display.gate import Card
from conversations.models import Conversation, Output
from conversations.pages.approvals.bulk import BulkPost
from conversations.pages.approvals.card import nothing_to_decide


@sensitive_post_parameters("password")
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
    post = BulkPost.decide(request, [card.row.pk for card in shown], shown, "page")
    if post.done:
        return redirect(f"{mine.get_absolute_url()}#now")
    return _page(request, mine, [post.row(card) for card in _cards(request, asked)], post)


def _cards(request: PersonRequest, rows: QuerySet[Output]) -> list[Card]:
    """Return the first cards of these outputs, in the order in which the calls run."""
    ordered = rows.select_related("conversation__owner").order_by("prompt_id", "position")
    return cards(list(ordered[:TOGETHER_MOST]), request.user, helps=True)


def _page(
    request: PersonRequest, conversation: Conversation, rows: Sequence[BulkRow], post: BulkPost, more: int = 0
) -> HttpResponse:
    form = post.form(rows, reverse("sheet", args=[conversation.pk]))
    back = f"{conversation.get_absolute_url()}#now"
    context = {**form, "conversation": conversation, "back": back, "more": more, "marks": "?all=approve&risk="}
    return render(request, "conversations/sheet.html", context, status=post.status)
