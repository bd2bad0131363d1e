"""Rows in the forms of cards: changed in the chat, on the sheet and in the admin, where nothing is decided by that."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from pydantic import BaseModel

from conversations.models import Output, Prompt
from tests.conversations.pages.test_approvals import HTMX, at, said
from tests.conversations.questions import asked, outcome
from tests.conversations.recorded import Site
from tests.conversations.support import person

pytestmark = pytest.mark.django_db


class Guest(BaseModel):
    name: str
    nights: int = 1


class Party(BaseModel):
    """Who comes, and when?"""

    title: str = ""
    guests: list[Guest] = []
    begins: datetime


TYPED = {
    "line-0": "typed", "rows-1": "0", "1.0.line-0": "Ann", "1.0.number-1": "", "datetime-2": "2026-12-24T18:00",
    "datetime-2.zone": "Europe/Berlin",
}  # fmt: skip


@pytest.fixture
def chief(client: Client) -> User:
    user = person("anna", is_superuser=True, is_staff=True)
    client.force_login(user)
    return user


@pytest.fixture
def question(site: Site, chief: User) -> tuple[Prompt, Output]:
    return asked(site, chief, Party)


def rows_in(html: str) -> list[str]:
    return re.findall(r'name="(?:\d+-)?rows-1" value="([\d,]*)"', html)


def together(gate: Output, **more: str) -> dict[str, Any]:
    """What the form of all sends."""
    typed = {f"{gate.pk}-{name}": text for name, text in (TYPED | more).items()}
    return {"id": str(gate.pk), f"digest_{gate.pk}": gate.digest, f"decision_{gate.pk}": "answer", **typed}


@pytest.mark.parametrize("where", ["card", "htmx", "admin", "sheet", "together"])
def test_a_row_is_added_and_nothing_is_decided(
    client: Client, site: Site, question: tuple[Prompt, Output], where: str
) -> None:
    prompt, gate = question
    places = {
        "admin": f"/admin/conversations/approval/{gate.pk}/change/",
        "sheet": reverse("sheet", args=[prompt.conversation_id]),
        "together": f"{reverse('admin:conversations_approval_together')}?ids={gate.pk}",
    }
    address, headers = places.get(where, at("decide", gate)), HTMX if where == "htmx" else None
    several = where in ("sheet", "together")

    def send(**more: str) -> Any:
        posted = together(gate, **more) if several else said(gate, "answer", **(TYPED | more))
        return client.post(address, posted, headers=headers)

    grown = send(**{"add-1": "1"})
    assert rows_in(grown.text) == ["0,1"]
    assert "".join(re.findall(r'value="(Ann|typed|Europe/Berlin)"', grown.text)) == "typedAnnEurope/Berlin"
    less = send(**{"rows-1": "0,1", "1.1.line-0": "Bob", "remove-1": "0"})
    assert rows_in(less.text) == ["1"]
    gate.refresh_from_db()
    assert gate.decided_at is None
    wrong = send(**{"rows-1": "0,1", "1.1.line-0": "Bob", "1.1.number-1": "many"})
    assert "Enter a whole number." in wrong.text
    send(**{"rows-1": "0,1", "1.1.line-0": "Bob", "1.1.number-1": "4"})
    found = outcome(site, prompt)
    assert found == {
        "title": "typed",
        "guests": [{"name": "Ann", "nights": 1}, {"name": "Bob", "nights": 4}],
        "begins": "2026-12-24T18:00:00+01:00",
    }
