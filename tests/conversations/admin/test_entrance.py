"""The entrance of the admin: one page to sign in for the whole site, and plain words for members."""

from __future__ import annotations

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.test import Client

from tests.conversations.support import PASSWORD, person

pytestmark = pytest.mark.django_db
PAGES = ("/admin/", "/admin/conversations/approval/", "/admin/auth/user/add/", "/admin/nowhere/", "/admin/search/")


@pytest.fixture
def member() -> User:
    return person("mara", first_name="Mara")


@pytest.fixture
def chief() -> User:
    return person("ada", is_staff=True, is_superuser=True)


@pytest.mark.parametrize("page", PAGES)
def test_a_member_is_told_that_it_is_not_for_them(client: Client, member: User, page: str) -> None:
    """With the way back to the chat, and no second form to sign in."""
    client.force_login(member)
    shown = client.get(page)
    html = shown.content.decode()
    assert shown.status_code == 403
    assert "The administration is for staff" in html
    assert "signed in as mara" in html
    assert 'href="/">Go to your conversations</a>' in html
    assert 'type="password"' not in html
    assert client.post(page, {"username": "ada", "password": PASSWORD}).status_code == 403


@pytest.mark.parametrize("page", PAGES)
def test_a_stranger_signs_in_on_the_page_of_the_site_and_comes_back(client: Client, chief: User, page: str) -> None:
    shown = client.get(page, follow=True)
    assert shown.redirect_chain[-1] == (f"/login/?next={page}", 302)
    assert not [each.name for each in shown.templates if each.name and each.name.startswith("admin/")]
    sent = client.post("/login/", {"username": "ada", "password": PASSWORD, "next": page})
    assert sent["Location"] == page


def test_a_member_who_signs_in_on_the_way_to_the_admin_is_told_once(client: Client, member: User) -> None:
    """No loop: the sign-in page sends people who are known to `next`, and the admin sends nobody back."""
    sent = client.post(
        "/login/", {"username": "mara", "password": PASSWORD, "next": "/admin/conversations/approval/"}, follow=True
    )
    assert [address for address, _ in sent.redirect_chain] == ["/admin/conversations/approval/"]
    assert sent.status_code == 403
    for address in ("/login/?next=/admin/", "/admin/login/?next=/admin/", "/admin/login/?next=/login/%3Fnext=/admin/"):
        again = client.get(address, follow=True)
        assert (again.status_code, len(again.redirect_chain) < 2) == (403, True)


def test_a_member_can_sign_in_as_somebody_else(client: Client, member: User, chief: User) -> None:
    client.force_login(member)
    assert 'name="next" value="/admin/login/"' in client.get("/admin/").content.decode()
    left = client.post("/logout/", {"next": "/admin/login/"}, follow=True)
    assert left.redirect_chain[-1] == ("/login/?next=/admin/", 302)
    assert client.post("/login/", {"username": "ada", "password": PASSWORD, "next": "/admin/"})["Location"] == "/admin/"
    assert client.get("/admin/").status_code == 200


@pytest.mark.parametrize(
    ("then", "leads_to"),
    [
        ("/admin/auth/user/", "/admin/auth/user/"),
        ("", "/admin/"),
        ("https://elsewhere.example/", "/admin/"),
        ("//elsewhere.example/", "/admin/"),
        ("javascript:alert(1)", "/admin/"),
        ("foo", "/admin/"),
        ("home", "/admin/"),
        ("?", "/admin/"),
        ("#", "/admin/"),
    ],
)
def test_nothing_leads_off_the_site(client: Client, chief: User, then: str, leads_to: str) -> None:
    assert client.get("/admin/login/", {"next": then})["Location"] == f"/login/?next={leads_to}"
    client.force_login(chief)
    assert client.get("/admin/login/", {"next": then})["Location"] == leads_to


@pytest.mark.parametrize("then", ["/login/", "/login/?next=/login/", "/admin/login/", "/admin/login/?next=/", "?", "#"])
def test_a_page_to_sign_in_on_leads_to_no_other(client: Client, member: User, then: str) -> None:
    """Neither back to itself, over and over, nor to an error."""
    sent = client.post("/login/", {"username": "mara", "password": PASSWORD, "next": then})
    assert sent["Location"] == "/"
    assert client.get("/login/", {"next": then})["Location"] == "/"


def test_the_lock_holds_whichever_way_one_came(client: Client, chief: User) -> None:
    """Five wrong passwords on the way to the admin, and the right one is refused there and everywhere."""
    at = client.get("/admin/", follow=True).redirect_chain[-1][0]
    for _ in range(5):
        last = client.post(at, {"username": "ada", "password": "wrong", "next": "/admin/"})
    assert last.status_code == 429
    assert AccessAttempt.objects.count() == 5
    assert client.post(at, {"username": "ada", "password": PASSWORD, "next": "/admin/"}).status_code == 429
    assert client.get("/admin/").status_code == 302
