"""Places of cards: the addresses of a card's forms, which differ between the chat, the inbox and the admin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from django.urls import reverse

from agents.engine.decisions import Decision
from conversations.models import Output

PLAIN, EDIT, REJECT, REMEMBER = "plain", "edit", Decision.REJECT.value, "remember"
FORMS = (EDIT, REJECT, REMEMBER)
"""The forms that can be open on a card; plain: none."""


@dataclass(frozen=True)
class CardPlace:
    """Where a card stands. `decide` is where its forms are sent.

    `pages` are the pages with the card, by the form that is open on it. `cards` are the addresses of the card alone,
    likewise, which a script puts in the place of the card; empty: its links and forms are those of the browser.
    """

    decide: str
    pages: Mapping[str, str]
    cards: Mapping[str, str] = field(default_factory=dict)

    @property
    def alone(self) -> CardPlace:
        """The same place without scripts."""
        return replace(self, cards={})


def in_chat(row: Output) -> CardPlace:
    """Return the place of a card in its conversation."""
    page, anchor = reverse("conversation", args=[row.conversation_id]), f"#a-{row.pk}"
    card = reverse("card", args=[row.pk])
    return CardPlace(
        reverse("decide", args=[row.pk]),
        {PLAIN: f"{page}{anchor}"} | {form: f"{page}?{form}={row.pk}{anchor}" for form in FORMS},
        {form: f"{card}?as={form}" for form in (PLAIN, *FORMS)},
    )


def on_page(address: str, query: str = "", *, scripts: bool = False) -> CardPlace:
    """Return the place of a card on a page of its own, which also decides it and opens its forms by `?as=`.

    `query`: what else stands in the query of its address.
    """
    named = {form: f"as={form}" for form in FORMS} | {PLAIN: ""}
    pages = {form: _with(address, query, more) for form, more in named.items()}
    return CardPlace(_with(address, query), pages, pages if scripts else {})


def _with(address: str, *queries: str) -> str:
    said = "&".join(filter(None, queries))
    return f"{address}?{said}" if said else address
