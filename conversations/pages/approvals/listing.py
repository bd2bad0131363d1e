"""The list of the inbox: a row for each approval, in groups by when they expire, or by the day of the decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from conversations.accounts.names import display_name, names_of
from conversations.display.faithful import first_line
from conversations.display.gate import Card, card
from conversations.display.when import day
from conversations.models import Output
from conversations.pages.versions import version


@dataclass(frozen=True)
class InboxRow:
    """An approval in the list. `who`: whose call it is, `address`: where it opens, `current`: it is open now."""

    card: Card
    who: str
    address: str
    current: bool
    group: str

    @property
    def version(self) -> str:
        """The version of the row."""
        row = self.card.row
        return version(self.card.stands, row.conversation_id, self.who, self.address, self.current, row.expires_at)

    @property
    def line(self) -> str:
        """What is asked about, in one line: the first of the input, or of the question."""
        asked = self.card.question
        return self.card.first_line or (first_line(asked.text) if asked else "")

    @property
    def soon(self) -> bool:
        """Whether it expires today: the row then says when."""
        return self.group in (HOUR, TODAY)


@dataclass(frozen=True)
class InboxGroup:
    """Rows under one heading. `id` names it on the page."""

    title: str
    rows: list[InboxRow]

    @property
    def id(self) -> str:
        """Its name in HTML."""
        return f"g-{self.title.lower().replace(' ', '-')}"


HOUR, TODAY, TOMORROW, LATER, NEVER = (
    "Expires within the hour",
    "Expires today",
    "Expires tomorrow",
    "Expires later",
    "Does not expire",
)


def groups(outputs: Sequence[Output], reader: User, query: str, current: int | None) -> list[InboxGroup]:
    """Return these approvals in groups, in their order. `query`: that of their addresses; `current`: which is open."""
    names = names_of({output.decided_by for output in outputs if output.decided_by}, reader)
    rows = [
        InboxRow(
            card(output, names),
            "you" if output.conversation.owner_id == reader.pk else display_name(output.conversation.owner),
            address_of("approval", output.pk, query=query),
            output.pk == current,
            _decided(output) if output.decided_at else _expires(output),
        )
        for output in outputs
    ]
    return [InboxGroup(title, list(found)) for title, found in groupby(rows, lambda row: row.group)]


def address_of(name: str, *args: int, query: str = "") -> str:
    """Return the address of this name, with this query."""
    path = reverse(name, args=args)
    return f"{path}?{query}" if query else path


def _expires(output: Output) -> str:
    if output.expires_at is None:
        return NEVER
    if output.expires_at <= timezone.now() + timedelta(hours=1):
        return HOUR
    days = (timezone.localtime(output.expires_at).date() - timezone.localdate()).days
    return (TODAY, TOMORROW)[days] if days < 2 else LATER


def _decided(output: Output) -> str:
    return day(output.decided_at) if output.decided_at else ""
