"""The e-mails that the site writes: plain text, in which nothing that a model wrote can act.

What came from a model or a conversation is one line at most, what cannot be seen in it is marked, and nothing in it
becomes a link: the only links are the site's own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.urls import reverse

from conversations.accounts.names import display_name
from conversations.display.faithful import first_line, plain
from conversations.display.gate import Card, cards
from conversations.display.when import on
from conversations.models import Output
from conversations.notifications.waits import PersonWaits, Wait

TURNS_MOST = 10
"""Turns that one mail describes; of more it says how many."""
TITLE_MOST, LINE_MOST = 80, 200
"""Characters of a title and of a line; the whole stands on the page."""

# What mail programs make a link of: an address with its scheme, and names with dots.
_LINKS = re.compile(r"(?<=\w)(://|\.(?=\w)|@(?=\w))")


@dataclass(frozen=True)
class WaitingTurn:
    """A turn that waits, as a mail describes it. `asked_by` is empty where the reader asked.

    `another`: the reader asked, and somebody else must decide.
    """

    title: str
    asked_by: str
    card: Card
    what: str
    reason: str
    begins: str
    more: int
    since: str
    until: str
    link: str
    another: bool


def waiting(telling: PersonWaits) -> EmailMessage | None:
    """The mail that says what waits for a person, where to decide it, and until when; None where nothing does now."""
    pending = Output.objects.pending().filter(prompt__in=[wait.prompt for wait in telling.waits])
    still = set(pending.values_list("prompt", flat=True))
    waits = [wait for wait in telling.waits if wait.prompt.pk in still]
    if not waits:
        return None
    turns = [_turn(wait, telling.person) for wait in waits[:TURNS_MOST]]
    for_another = all(turn.another for turn in turns)
    whom = "someone else" if for_another else "you"
    subject = f"Waiting for {whom}: {turns[0].title}" if len(waits) == 1 else f"{len(waits)} turns wait for {whom}"
    context = {"turns": turns, "count": len(waits), "more": len(waits) - len(turns), "for_another": for_another}
    return written(telling.person.email, subject, "mail/waiting.txt", {**context, "name": display_name(telling.person)})


def written(to: str, subject: str, template: str, context: dict[str, object]) -> EmailMessage:
    """A mail of the site, with the words of a template. Its `site` and `account` are addresses."""
    known = {"site": settings.AGENTSITE_URL, "account": _link(reverse("account"))}
    text = render_to_string(template, {**known, **context})
    # So that an automatic answer ("I am on holiday") is not sent back.
    return EmailMessage(subject, text, to=[to], headers={"Auto-Submitted": "auto-generated"})


def line(text: str, most: int = LINE_MOST) -> str:
    """One line that anybody may have written, for a mail: nothing in it is hidden, and nothing becomes a link."""
    return _LINKS.sub(lambda found: f"[{found[0]}]", plain(" ".join(first_line(text, most).split(" "))))


def _turn(wait: Wait, reader: User) -> WaitingTurn:
    conversation = wait.prompt.conversation
    pending = Output.objects.pending().filter(prompt=wait.prompt).select_related("conversation").order_by("position")
    first, *rest = cards(list(pending), reader)
    own = conversation.owner_id == reader.pk
    return WaitingTurn(
        title=line(str(conversation), TITLE_MOST),
        asked_by="" if own else line(display_name(conversation.owner), TITLE_MOST),
        card=first,
        what=line(first.title, TITLE_MOST),
        reason=line(first.row.reason),
        begins=line(first.call.first_line),
        more=len(rest),
        since=_moment(wait.since),
        until=_moment(min(card.row.expires_at for card in (first, *rest) if card.row.expires_at)),
        link=_link(_page(first, own)),
        another=all(card.may and not card.allow for card in (first, *rest)),
    )


def _page(card: Card, own: bool) -> str:
    """The page where it is decided, signed in: opening it decides nothing."""
    if own:
        return f"{card.row.conversation.get_absolute_url()}#a-{card.row.pk}"
    return reverse("admin:conversations_approval_change", args=[card.row.pk])


def _link(path: str) -> str:
    return settings.AGENTSITE_URL + path


def _moment(time: datetime) -> str:
    return f"{on(time)} {settings.TIME_ZONE}"
