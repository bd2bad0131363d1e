"""What the page of one person sends is never done as another who has signed in since, in the same browser."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from conversations.models import Conversation
from tests.conversations.support import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def mara(client: Client) -> User:
    user = person("mara", first_name="Mara")
    client.force_login(user)
    return user


def test_a_script_is_told_in_a_sentence(client: Client, mara: User) -> None:
    ann = person("ann")
    for method in (client.post, client.get):
        refused = method(reverse("start"), {"input": "Private."}, headers={"X-Person": str(ann.pk)})
        assert refused.status_code == 409
        assert refused.text.startswith("You are signed in as Mara in this browser now")
        assert refused["Content-Type"].startswith("text/plain")
        assert refused["X-Person"] == str(mara.pk)
    assert not Conversation.objects.exists()


@pytest.mark.parametrize("name", ["account", "logout", "start", "theme", "sign-out-everywhere"])
def test_a_form_is_answered_with_a_page(client: Client, mara: User, name: str) -> None:
    ann = person("ann")
    refused = client.post(reverse(name), {"first_name": "Ann", "input": "Private.", "page_of": str(ann.pk)})
    assert refused.status_code == 409
    assert "You are signed in as Mara in this browser now" in refused.text
    assert "Private." not in refused.text
    mara.refresh_from_db()
    assert mara.first_name == "Mara"
    assert client.get("/account/").status_code == 200, "still signed in"


def test_one_s_own_page_and_programs_are_not_refused(client: Client, mara: User) -> None:
    for more, sent in (({}, {"page_of": str(mara.pk)}), ({"X-Person": str(mara.pk)}, {}), ({}, {})):
        saved = client.post(reverse("account"), {"first_name": "M", "last_name": "", "email": "", **sent}, headers=more)
        assert saved.status_code == 302
    client.logout()
    sent_away = client.post(reverse("account"), {}, headers={"X-Person": str(mara.pk)})
    assert sent_away["Location"].startswith("/login/"), "who is signed out signs in again"


def test_a_page_names_its_person(client: Client, mara: User) -> None:
    assert f'data-person="{mara.pk}"' in client.get("/account/").text
