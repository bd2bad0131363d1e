"""Changes of an edit: while somebody types, what differs from the call as it stands on the card."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.shortcuts import render

from conversations.accounts.http import PersonRequest
from conversations.approvals.permissions import shown_to
from conversations.display.cards import cards
from conversations.display.changes import typed_changes
from conversations.display.decision_form import edit_form
from conversations.models import Output
from conversations.pages.decorators import form_view


@form_view
def changes(request: PersonRequest, pk: int) -> HttpResponse:
    """Show what was typed into the form of an edit so far, field by field; nothing is recorded.

    404 if this person may not see the approval. Nothing is shown once it is decided, or if it cannot be edited.
    """
    seen = shown_to(request.user, Output.objects.gates().filter(pk=pk)).select_related("conversation__owner", "prompt")
    for card in cards(list(seen), request.user):
        prefix = f"{pk}-" if f"edited_{pk}" in request.POST else ""
        form = edit_form(card, request.POST, prefix) if card.allow else None
        return render(
            request, "conversations/card/typed_changes.html", {"changes": typed_changes(form) if form else ()}
        )
    raise Http404
