"""Loading cards: those of some outputs for a reader, with all that they show, looked up once for all of them."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import AnonymousUser, User

from agents.engine.decisions import Ask
from agents.engine.paths import parent
from conversations.accounts.names import Asked, display_name, first_deciders, names_of
from conversations.approvals.grants import why_asked
from conversations.approvals.permissions import barred_from_allowing, may_allow, may_decide, needs_password
from conversations.display.asker import askers_of
from conversations.display.gate import Card, card
from conversations.display.helps import TurnStart, helps_of
from conversations.models import Output

NAMED_MOST = 4
"""People who may decide that are listed by name."""


def cards(
    rows: Sequence[Output], reader: User | AnonymousUser, *, decided: bool = False, helps: bool = False
) -> list[Card]:
    """Return the cards of these outputs, in order. Names and askers are looked up once for all of them.

    Decided ones have their askers only if `decided` says so: most pages do not tell who asked. What the agent said of
    several calls of an answer stands at the first of them, and at the first that was edited: there it is about the
    original input. `helps`: those that wait are decided where they are shown, with what helps to.
    """
    names = names_of({actor for row in rows for actor in (row.decided_by, row.edited_by) if actor}, reader)
    found = [card(row, names) for row in rows]
    _quote_askers(found, decided)
    if helps:
        _help(found, reader, decided)
    waiting = [each for each in found if each.pending]
    for each in waiting:
        each.may, each.allow = may_decide(reader, each.row), may_allow(reader, each.row)
        each.password = _password(each, reader)
    _name_deciders([each for each in waiting if not each.allow])
    if reader.pk is not None:
        _say_why_asked([each for each in waiting if each.row.conversation.owner_id == reader.pk], reader.pk)
    return found


def _quote_askers(cards: Sequence[Card], decided: bool) -> None:
    """Say who asks for these calls, and where what the agent said of several stands."""
    askers = askers_of([each.row for each in cards if decided or each.pending])
    quoted = set()
    for each in cards:
        each.asker = askers.get(each.row.pk, each.asker)
        said = each.row.prompt_id, parent(each.row.path), each.entry.proposed is not None
        each.quotes = bool(each.asker.words) and not each.interrupted and said not in quoted
        quoted |= {said} if each.quotes else set()


def _name_deciders(cards: Sequence[Card]) -> None:
    """Name some of the people who may let these calls run, which the reader may not."""
    blocked: list[tuple[Card, Asked]] = [
        (each, (each.row.conversation.owner_id, frozenset(barred_from_allowing(each.row)))) for each in cards
    ]
    others = first_deciders((asked for _, asked in blocked), NAMED_MOST) if blocked else {}
    for each, asked in blocked:
        each.deciders = [display_name(user) for user in others[asked]]


def _say_why_asked(cards: Sequence[Card], owner: int) -> None:
    """Mark these cards as about calls of the reader, and say why their grants do not cover them."""
    whys = why_asked([each.row for each in cards if each.editable], owner)
    for each in cards:
        each.own_call, each.why_asked = True, whys.get(each.row.pk, ())


def _password(card: Card, reader: User | AnonymousUser) -> str:
    """Return whether the reader needs their password to let this call run: "", "asked", or "none" if they have none."""
    asked = card.allow and card.row.ask in (Ask.APPROVE, Ask.INTERRUPTED) and needs_password(card.row)
    return "" if not asked or isinstance(reader, AnonymousUser) else "asked" if reader.has_usable_password() else "none"


def _help(cards: Sequence[Card], reader: User | AnonymousUser, decided: bool) -> None:
    """Load what helps to decide about these cards, and what their turns came of, once for all of them."""
    waiting = [(each.row, each.entry) for each in cards if each.pending]
    found = helps_of(waiting, reader)
    started = set()
    for each in (each for each in cards if decided or each.pending):
        each.helps = found.get(each.row.pk) if each.row.ask == Ask.APPROVE else None
        if each.row.prompt_id not in started:
            started.add(each.row.prompt_id)
            each.start = TurnStart.of(each.row.prompt, reader)
