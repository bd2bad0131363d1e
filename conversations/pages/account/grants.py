"""My grants: what a person has allowed to run without asking them, how it was used, and revoking it."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.db.models import Q
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone

from conversations.accounts.http import PersonRequest
from conversations.approvals.grants import revoke
from conversations.display.gate import card
from conversations.display.grant_words import grant_words
from conversations.models import Grant, Output
from conversations.pages.decorators import form_view, page_view
from conversations.pages.sidebar import sidebar

ENDED_SHOWN = 20
"""Grants that ended lately which are listed below those that stand."""


@dataclass(frozen=True)
class GrantRow:
    """A grant as it is listed. `given_with` is the approval with which it was given, and `line` that call in a line.

    `ended` says why it no longer holds; "" while it does.
    """

    grant: Grant
    words: list[str]
    given_with: Output | None
    line: str
    ended: str = ""


@page_view
def grants(request: PersonRequest) -> HttpResponse:
    """List the grants of this person: those that stand, and the last ones that ended."""
    mine = Grant.objects.filter(user=request.user).select_related("prompt__conversation", "conversation")
    standing = list(mine.standing())
    ended = list(mine.exclude(pk__in=[grant.pk for grant in standing])[:ENDED_SHOWN])
    context = {"rows": _rows(standing), "ended": _rows(ended), "place": "account", "sidebar": sidebar(request.user)}
    return render(request, "conversations/grants.html", context)


@form_view
def revoke_grant(request: PersonRequest, pk: int) -> HttpResponse:
    """Revoke a grant at once. 404 if it is not theirs."""
    get_object_or_404(Grant, user=request.user, pk=pk)
    revoke(request.user, pk)
    messages.success(request, "Revoked. From the next call on, you are asked again.")
    return redirect("grants")


def _rows(found: list[Grant]) -> list[GrantRow]:
    theirs = Q(pk__in=[])
    for grant in found:
        theirs |= Q(conversation=grant.prompt.conversation_id, prompt=grant.prompt_id, path=grant.path)
    given = {(row.prompt_id, row.path): row for row in Output.objects.filter(theirs).exclude(gate="")}
    rows = []
    for grant in found:
        output = given.get((grant.prompt_id, grant.path))
        line = card(output).first_line if output else ""
        where = f"“{grant.conversation}”" if grant.conversation else ""
        rows.append(GrantRow(grant, grant_words(grant.said, place=where), output, line, _ended(grant)))
    return rows


def _ended(grant: Grant) -> str:
    if grant.revoked_at:
        return "Revoked"
    if grant.until and grant.until <= timezone.now():
        return "Its time is over"
    return "Used up" if grant.uses is not None and grant.used >= grant.uses else ""
