"""Approval cards: decide one gate in the chat."""

from __future__ import annotations

from dataclasses import replace

from django.core.exceptions import ObjectDoesNotExist
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters

from conversations.accounts.http import PersonRequest
from conversations.approvals.decisions import NOT_PENDING, Conflict, DecisionRefused
from conversations.display.cards import cards
from conversations.display.decision_form import RowsChanged, decide_posted, open_card, remember_form
from conversations.display.gate import Card, Opened
from conversations.models import Output
from conversations.pages.chat.live import fragment, page_seq
from conversations.pages.decorators import form_view, page_view
from conversations.pages.timeline.blocks import Block
from conversations.pages.timeline.turns import build_turns


@page_view
def card(request: PersonRequest, pk: int) -> HttpResponse:
    """Show one card, with the form that `as` names (edit, reject; plain: none). 404 if the user does not own it."""
    block, shown = _block(request, pk)
    open_card(shown, request.GET.get("as", "plain"))
    return _answer(request, block)


@sensitive_post_parameters("password")
@form_view
def grant_words(request: PersonRequest, pk: int) -> HttpResponse:
    """Show in words what the form of *Approve and remember* would allow as it stands. 404 if they cannot grant this."""
    mine = (
        Output.objects.visible_to(request.user).pending().filter(pk=pk).select_related("conversation__owner", "prompt")
    )
    for shown in cards(list(mine), request.user):
        if form := remember_form(shown, request.POST):
            return render(request, "conversations/card/remember_words.html", {"card": shown, "form": form})
    raise Http404


@form_view
def decide(request: PersonRequest, pk: int) -> HttpResponse:
    """Decide the gate of an output, by the digest that was shown.

    404 if the conversation is not the user's, 403 if they may not decide, 409 with the current card if it changed, or
    if nobody was asked, 400 with what was typed if that is not valid.
    """
    if never := Output.objects.visible_to(request.user).filter(pk=pk, gate="").first():
        return nothing_to_decide(request, never.conversation.get_absolute_url())
    _, shown = _block(request, pk)
    try:
        output = decide_posted(shown, request, "page")
    except ObjectDoesNotExist as error:
        raise Http404 from error
    except DecisionRefused as refused:
        return _refused(request, pk, shown.opened, refused)
    if request.htmx:
        html = fragment(request.user, output.conversation, page_seq(request))
        return HttpResponse(html, headers={"HX-Reswap": "none"})
    return redirect(f"{output.conversation.get_absolute_url()}#{_next(output)}")


def nothing_to_decide(request: HttpRequest, back: str) -> HttpResponse:
    """Return a page that says that nobody was asked, with a link to the page at `back`."""
    return render(request, "409.html", {"why": NOT_PENDING, "back": back}, status=409)


def _refused(request: PersonRequest, pk: int, opened: Opened, refused: DecisionRefused) -> HttpResponse:
    """Return the current card with what was typed: in its form while it waits, otherwise below the decision."""
    block, shown = _block(request, pk)
    if shown.pending:
        shown.opened = replace(opened, problem=opened.problem or ("" if shown.may else str(refused)))
    else:
        shown.opened = replace(opened, problem="Not decided.")
    if isinstance(refused, RowsChanged):
        return _answer(request, block)
    status = 409 if isinstance(refused, Conflict) else 403 if refused.code == "forbidden" else 400
    return _answer(request, block, status)


def _block(request: PersonRequest, pk: int) -> tuple[Block, Card]:
    """Return the block of this output's gate, and its card. Raises Http404."""
    mine = Output.objects.visible_to(request.user).gates().filter(pk=pk).select_related("prompt__asked_by").first()
    for turn in build_turns([mine.prompt], request.user) if mine else []:
        for block in turn.blocks:
            if block.card and block.card.row.pk == pk:
                return block, block.card
    raise Http404


def _answer(request: PersonRequest, block: Block, status: int = 200) -> HttpResponse:
    """Return the card alone for htmx, or on a page of its own for a browser without scripts."""
    if block.card and not request.htmx:
        block.card.place = block.card.at.alone  # nothing to merge an answer into: its forms are sent as they are
    context = {"one": block, "conversation": block.card.row.conversation if block.card else None}
    name = "conversations/card/one.html" if request.htmx else "conversations/decide.html"
    return render(request, name, context, status=status)


def _next(output: Output) -> str:
    """Return the anchor to show after a decision: the next card that waits, otherwise the end."""
    waits = Output.objects.pending().filter(conversation=output.conversation_id)
    following = waits.filter(prompt=output.prompt_id, position__gt=output.position).first() or waits.first()
    return f"a-{following.pk}" if following else "now"
