"""Frames: deciding one approval, or several together, in the same way in the inbox and in the admin.

What differs between them is in a CardFrame or a SheetFrame: the addresses, and the page around a card or a form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.text import Truncator

from agents.engine.decisions import Decision
from conversations.accounts.http import PersonRequest
from conversations.approvals.decisions import Conflict, DecisionRefused
from conversations.approvals.many import DecisionOutcome
from conversations.approvals.permissions import shown_to
from conversations.display.bulk_form import LEAVE, BulkRow, marked_rows
from conversations.display.card_place import CardPlace
from conversations.display.cards import cards
from conversations.display.decision_form import RowsChanged, decide_posted, open_card
from conversations.display.faithful import inert
from conversations.display.gate import Card
from conversations.models import Output
from conversations.pages.approvals.bulk import BulkPost
from conversations.pages.approvals.card import nothing_to_decide


@dataclass(frozen=True)
class CardFrame:
    """What one card stands in. `via` is what the ledger says of a decision made there, `back` where its list is.

    `show` answers with the card and a status, `decided` after a decision.
    """

    via: str
    back: str
    place: CardPlace
    show: Callable[[Card, int], HttpResponse]
    decided: Callable[[Output], HttpResponse]


@dataclass(frozen=True)
class SheetFrame:
    """What a form of several stands in. `show` answers with what the form shows, `decided` after all decisions.

    `address` is where the form is sent, with a query that names its approvals.
    """

    via: str
    back: str
    address: str
    show: Callable[[dict[str, Any], int], HttpResponse]
    decided: Callable[[Sequence[DecisionOutcome]], HttpResponse]


def loaded(request: HttpRequest, keys: Sequence[int]) -> list[Card]:
    """Return the cards of these approvals that the person may see, in the order in which they were asked."""
    mine = shown_to(request.user, Output.objects.gates().filter(pk__in=keys))
    found = mine.select_related("conversation__owner", "prompt__asked_by")
    return cards(list(found.order_by("asked_at", "pk")), request.user, decided=True, helps=True)


def serve_card(request: PersonRequest, pk: int | None, frame: CardFrame) -> HttpResponse:
    """GET shows the approval, with the form open that `as` names (edit, reject); POST decides it by the digest shown.

    404 if this person may not see it; 409 with its present state if it has changed, and if nobody was asked about an
    output of their own; 400 with what was typed if that is invalid, 403 with it if this person may not decide.
    """
    keys = [] if pk is None else [pk]
    found = loaded(request, keys)
    if not found and request.method == "POST" and _never_asked(request, keys):
        return nothing_to_decide(request, frame.back)
    if not found:
        raise Http404
    card = found[0]
    card.place = frame.place
    if request.method != "POST":
        open_card(card, request.GET.get("as", "plain"))
        return frame.show(card, 200)
    try:
        output = decide_posted(card, request, frame.via)
    except ObjectDoesNotExist as error:
        raise Http404 from error
    except DecisionRefused as refused:
        return _refused(request, card, refused, frame)
    return frame.decided(output)


def _refused(request: PersonRequest, card: Card, refused: DecisionRefused, frame: CardFrame) -> HttpResponse:
    """Show the approval as it is now, with what was typed; 409 if it has changed since it was shown."""
    now = loaded(request, [card.row.pk])
    if not now:
        raise Http404
    shown = now[0]
    shown.place, shown.opened = frame.place, card.opened
    if isinstance(refused, RowsChanged):
        return frame.show(shown, 200)
    return frame.show(shown, 409 if isinstance(refused, Conflict) else 403 if refused.code == "forbidden" else 400)


def serve_sheet(request: PersonRequest, keys: Sequence[int], frame: SheetFrame) -> HttpResponse:
    """GET shows these approvals; POST decides those that were marked, each by itself.

    `risk` marks those of this risk for approval. 409 with what was marked and typed if one was refused; 400 if calls of
    several risks were marked to be approved.
    """
    if request.method != "POST":
        word = Decision.APPROVE if "risk" in request.GET else LEAVE
        rows = marked_rows(loaded(request, keys), word, request.GET.get("risk"))
        return frame.show(_form(frame, rows, BulkPost(request.POST)), 200)
    post = BulkPost.decide(request, keys, loaded(request, keys), frame.via)
    if post.done:
        return frame.decided(post.outcomes)
    found = loaded(request, keys)
    shown = {card.row.pk for card in found}
    form = _form(frame, [post.row(card) for card in found], post)
    form["unseen"] = [f"Approval {key}: {why}" for key, why in post.refused.items() if key not in shown]
    form["made"] = [outcome for outcome in post.outcomes if outcome.output]
    return frame.show(form, post.status)


def _form(frame: SheetFrame, rows: Sequence[BulkRow], post: BulkPost) -> dict[str, Any]:
    return {**post.form(rows, frame.address), "back": frame.back, "marks": "&risk="}


def summary(card: Card) -> str:
    """Return what was decided about this call, in one line."""
    line = Truncator(card.first_line).chars(80)
    what = f"{card.title}{f' ({line})' if line else ''}"
    return inert(
        f"Edited: {what}. Somebody else has to approve it now." if card.pending else f"{card.verdict}: {what}."
    )


def _never_asked(request: PersonRequest, keys: Sequence[int]) -> bool:
    """Whether these are outputs of the person's own conversations that nobody was asked about."""
    return Output.objects.visible_to(request.user).filter(pk__in=keys, gate="").exists()
