"""The inbox: the approvals that a person sees, as a list beside the one that is open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import BadRequest, PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods
from django.views.decorators.vary import vary_on_headers

from conversations.accounts.http import PersonRequest
from conversations.approvals.many import TOGETHER_MOST, DecisionOutcome
from conversations.approvals.permissions import count_waiting, decides
from conversations.database.ids import row_id, row_ids
from conversations.display.card_place import on_page
from conversations.display.gate import Card
from conversations.display.risk import RISKS_TO_FILTER
from conversations.models import GateState, Output
from conversations.pages.approvals.frames import CardFrame, SheetFrame, loaded, serve_card, serve_sheet, summary
from conversations.pages.approvals.inbox import ALL, ELSE, MINE, OTHERS, InboxFilter, choices, found, key_after, page
from conversations.pages.approvals.listing import InboxGroup, address_of, groups
from conversations.pages.decorators import page_view
from conversations.pages.sidebar import sidebar

WHOSE = (
    (ALL, "All that wait for you"),
    (MINE, "Mine"),
    (OTHERS, "Those of others"),
    (ELSE, "Waiting for someone else"),
)
WHOSE_DECIDED = ((ALL, "All"), *WHOSE[1:3])

# A browser must not go back to what a script was answered, as if that were the page.
_vary_on_script = vary_on_headers("HX-Request", "HX-Target")


@page_view
@_vary_on_script
def inbox(request: PersonRequest) -> HttpResponse:
    """Show the list with its first approval beside it; on a phone the list alone. 403 for who may decide nothing."""
    _raise_unless_deciding(request)
    return _inbox(request, None)


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@_vary_on_script
def approval(request: PersonRequest, pk: int) -> HttpResponse:
    """Show or decide one approval beside the list; after a decision, the next one. Answers as `serve_card` does."""
    if request.method != "POST":  # whoever may no longer decide is shown what they typed
        _raise_unless_deciding(request)
    asked = InboxFilter.given(request.GET)
    query = asked.query(row_id(request.GET.get("after", "")))
    # Where it is before the decision: an edit that asks somebody else gives it another place.
    key = key_after(request.user, asked, row_id(str(pk))) if request.method == "POST" else None

    def show(card: Card, status: int) -> HttpResponse:
        if request.htmx and request.htmx.target == f"a-{pk}":
            return render(request, "conversations/card/solo.html", {"card": card}, status=status)
        return _inbox(request, card, status)

    def decided(output: Output) -> HttpResponse:
        following = page(request.user, asked, output.pk, most=1, key=key).rows
        after = _list_page(request, asked, following[0], output) if following else None
        if not request.htmx:
            path = reverse("approval", args=[following[0].pk]) if following else reverse("approvals")
            return redirect(f"{path}?{asked.query(after, done=str(output.pk))}")
        card = _placed(request, following[0].pk, asked, after) if following else None
        return _inbox(request, card, after=after, done=output.pk)

    place = on_page(reverse("approval", args=[pk]), query, scripts=True)
    return serve_card(request, row_id(str(pk)), CardFrame("inbox", reverse("approvals"), place, show, decided))


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def together(request: PersonRequest) -> HttpResponse:
    """Show the approvals named by `ids` on one sheet, or decide those that were marked: see `serve_sheet`."""
    _raise_unless_deciding(request)
    keys = row_ids(request.POST.getlist("id") if request.method == "POST" else _ids(request))
    asked = InboxFilter.given(request.GET)
    back = address_of("approvals", query=asked.query(row_id(request.GET.get("after", ""))))
    if len(keys) > TOGETHER_MOST and request.method == "POST":  # no sheet sends so many
        raise BadRequest(f"At most {TOGETHER_MOST} approvals can be decided together.")
    if not keys:
        return redirect(back)
    kept, more = keys[:TOGETHER_MOST], len(keys) - TOGETHER_MOST
    address = address_of("approvals-together", query=asked.query(ids=",".join(map(str, kept))))

    def show(form: dict[str, Any], status: int) -> HttpResponse:
        return render(request, "conversations/sheet.html", {**form, "more": more}, status=status)

    def decided(outcomes: Sequence[DecisionOutcome]) -> HttpResponse:
        done = ",".join(str(outcome.output_id) for outcome in outcomes)
        return redirect(address_of("approvals", query=asked.query(done=done)))

    return serve_sheet(request, kept, SheetFrame("inbox", back, address, show, decided))


def _ids(request: PersonRequest) -> list[str]:
    """Return the ids in the address: each of its own, as boxes send them, or all in one."""
    return [each for ids in request.GET.getlist("ids") for each in ids.split(",")]


def _raise_unless_deciding(request: PersonRequest) -> None:
    if not decides(request.user):
        raise PermissionDenied("You may not decide any approvals. Ask an administrator for the permission.")


def _list_page(request: PersonRequest, asked: InboxFilter, following: Output, decided: Output) -> int | None:
    """Return the approval after which the page of the list begins that has the next one."""
    after = row_id(request.GET.get("after", ""))
    beside = page(request.user, asked, after)
    if following.pk in {row.pk for row in beside.rows}:
        return beside.after
    waits = (
        decided.gate == GateState.PENDING
    )  # it was edited, and has another place now: the next page begins with the next one
    return beside.rows[-1].pk if waits and beside.rows else decided.pk


def _placed(request: PersonRequest, pk: int, asked: InboxFilter, after: int | None) -> Card | None:
    """Return the card of an approval in the inbox; None if the person sees no such approval."""
    for card in loaded(request, [pk]):
        card.place = on_page(reverse("approval", args=[pk]), asked.query(after), scripts=True)
        return card
    return None


def _inbox(
    request: PersonRequest, card: Card | None, status: int = 200, *, after: int | None = None, done: int | None = None
) -> HttpResponse:
    """Answer with the list and this card, or the first: as a page, or for a script as what it puts in place.

    `done` was decided just now; else the address may name what was.
    """
    asked = InboxFilter.given(request.GET)
    opened = card is not None
    after = after if done else row_id(request.GET.get("after", ""))
    listed = page(request.user, asked, after)
    query = asked.query(listed.after)
    if card is None and listed.rows and not done:
        card = _placed(request, listed.rows[0].pk, asked, listed.after)
    shown = groups(listed.rows, request.user, query, card.row.pk if card else None)
    context = {
        "asked": asked,
        "place": "approvals",
        "groups": shown,
        "next": _next(shown),
        "older": address_of("approvals", query=asked.query(listed.rows[-1].pk)) if listed.more else "",
        "first": address_of("approvals", query=asked.query()) if listed.after else "",
        "query": query,
        "card": card,
        "waiting": count_waiting(request.user),
        "told": _told(request, [done] if done else row_ids(request.GET.get("done", "").split(","))),
        "here": address_of("approvals", query=query),
        "together_most": TOGETHER_MOST,
    }
    if request.htmx:
        return render(request, "conversations/inbox/live.html", context | {"oob": True}, status=status)
    offered = choices(request.user, asked)
    context |= {"choices": offered, "risks": RISKS_TO_FILTER, "sidebar": sidebar(request.user)}
    context |= {"whose": WHOSE_DECIDED if asked.decided else WHOSE, "one_pane": "item" if opened else "inbox"}
    if not listed.rows and not asked.decided and not asked.chosen:
        context["elsewhere"] = found(request.user, InboxFilter(whose=ELSE)).exists()
    return render(request, "conversations/inbox/page.html", context, status=status)


def _next(groups: Sequence[InboxGroup]) -> str:
    """Return the address of the row after the one that is open; "" if there is none on this page."""
    rows = [row for group in groups for row in group.rows]
    at = next((place for place, row in enumerate(rows) if row.current), len(rows))
    return rows[at + 1].address if at + 1 < len(rows) else ""


def _told(request: PersonRequest, keys: Sequence[int]) -> str:
    """Return what became of these approvals, if this person decided them just now."""
    mine = [card for card in loaded(request, keys[:TOGETHER_MOST]) if card.by == "you" or card.editor == "you"]
    if len(mine) > 1:
        return f"{len(mine)} actions are decided."
    return summary(mine[0]) if mine else ""
