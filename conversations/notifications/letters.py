"""The e-mails of the site: plain text, in which text written by a model can do no harm.

Text from a model or a conversation is at most one line, its invisible characters are marked, and nothing in it becomes
a link: the only links are the site's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.urls import reverse

from conversations.accounts.names import display_name
from conversations.display.cards import cards
from conversations.display.faithful import first_line, plain
from conversations.display.gate import Card
from conversations.display.when import on
from conversations.models import Notice, NoticeKind, Output
from conversations.notifications.due import Due
from conversations.notifications.kinds import KINDS
from conversations.notifications.news import about, unseen
from conversations.notifications.waits import Wait

UNANSWERED = "without an answer, the work continues without one"
UNDECIDED = "without a decision, it does not run"
"""What happens at the end of the time."""
TURNS_MOST = 10
"""Turns that one e-mail describes; of the rest it gives only the number."""
EVENTS_MOST = 30
"""The same of what has happened."""
TITLE_MOST, LINE_MOST = 80, 200
"""Maximum length of a title and of a line, in characters; the page shows the whole."""

# What mail programs turn into links: addresses with a scheme, and names with dots, of which Unicode has four (UTS 46).
_LINKS = re.compile(r"(?<=\w)(://|[.\u3002\uff0e\uff61](?=\w)|@(?=\w))")


def digest(person: User, told: Due) -> EmailMessage | None:
    """Return the e-mail that lists what waits for a person, where to decide it and until when, and what has happened.

    Left out is what no longer waits, and what they have seen on a page since. None if nothing is left.
    """
    pending = Output.objects.pending().filter(prompt__in=[wait.prompt for wait in told.waits])
    still = set(pending.values_list("prompt", flat=True))
    waits = [wait for wait in told.waits if wait.prompt.pk in still]
    notices = Notice.objects.filter(unseen(), pk__in=[notice.pk for notice in told.notices])
    events = list(notices.select_related("prompt__conversation").order_by("pk"))
    if not (waits or events):
        return None
    turns = [_turn(wait, person) for wait in waits[:TURNS_MOST]]
    shown = [_event(notice) for notice in events[:EVENTS_MOST]]
    for_another = bool(turns) and all(turn["another"] for turn in turns)
    context = {"turns": turns, "count": len(waits), "more": len(waits) - len(turns), "for_another": for_another}
    context |= {"events": shown, "more_events": len(events) - len(shown)}
    context |= {"edited": any(turn["card"].editor == "you" for turn in turns), "name": display_name(person)}
    subject = _subject(turns, len(waits), shown, len(events), for_another=for_another)
    return compose(person.email, subject, "mail/digest.txt", context)


def _subject(
    turns: Sequence[dict[str, Any]], waits: int, shown: Sequence[dict[str, str]], events: int, *, for_another: bool
) -> str:
    """Return the subject: what the only thing is, or how many there are."""
    if not turns:
        only = f"{shown[0]['heading']}: {shown[0]['title']}"
        return only if events == 1 else f"{events} things happened while you were away"
    whom = "someone else" if for_another else "you"
    subject = f"Waiting for {whom}: {turns[0]['title']}" if waits == 1 else f"{waits} turns are waiting for {whom}"
    return f"{subject}, and {events} more" if events else subject


def compose(to: str, subject: str, template: str, context: dict[str, object]) -> EmailMessage:
    """Return an e-mail of the site, rendered from a template, which also gets the addresses `site` and `account`."""
    known = {"site": settings.AGENTSITE_URL, "account": _link(reverse("account"))}
    text = render_to_string(template, {**known, **context})
    # So that automatic replies ("I am on holiday") are not sent back.
    return EmailMessage(subject, text, to=[to], headers={"Auto-Submitted": "auto-generated"})


def line(text: str, most: int = LINE_MOST) -> str:
    """Return a line of untrusted text for an e-mail: nothing in it is hidden, and nothing becomes a link."""
    return _LINKS.sub(lambda found: f"[{found[0]}]", plain(" ".join(first_line(text, most).split(" "))))


def _turn(wait: Wait, reader: User) -> dict[str, Any]:
    """Return a waiting turn as the template describes it. `asked_by` is empty if the reader asked.

    `another`: the reader asked, and somebody else must decide.
    """
    conversation = wait.prompt.conversation
    pending = Output.objects.pending().filter(prompt=wait.prompt).select_related("conversation").order_by("position")
    first, *rest = cards(list(pending), reader)
    own = conversation.owner_id == reader.pk
    ends = [card.row.expires_at for card in (first, *rest) if card.row.expires_at]
    return {
        "title": line(str(conversation), TITLE_MOST),
        "asked_by": "" if own else line(display_name(conversation.owner), TITLE_MOST),
        "card": first,
        "asks": "Question" if first.question else "Action",
        "what": line(first.row.reason) if first.question else line(first.title, TITLE_MOST),
        "program": line(first.asker.program, TITLE_MOST),
        "says": "" if first.question else line(first.asker.words),
        "reason": "" if first.question else line(first.reason),
        "begins": line(first.first_line),
        "more": len(rest),
        "since": _moment(wait.since),
        "until": _moment(min(ends)) if ends else "",
        "then": UNANSWERED if first.question else UNDECIDED,
        "link": _link(_page(first, own)),
        "another": all(card.may and not card.allow for card in (first, *rest)),
    }


def _event(notice: Notice) -> dict[str, str]:
    """Return what has happened as the template describes it."""
    title, path = about(notice)
    heading = KINDS[NoticeKind(notice.kind)].heading
    return {"heading": heading, "title": line(title, TITLE_MOST), "at": _moment(notice.at), "link": _link(path)}


def _page(card: Card, own: bool) -> str:
    """Return the page where a signed-in person decides it: opening it decides nothing."""
    if own:
        return f"{card.row.conversation.get_absolute_url()}#a-{card.row.pk}"
    return reverse("approval", args=[card.row.pk])


def _link(path: str) -> str:
    return settings.AGENTSITE_URL + path


def _moment(time: datetime) -> str:
    return f"{on(time)} {settings.TIME_ZONE}"
