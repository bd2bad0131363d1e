"""Light or dark is chosen per browser: a cookie, with which a page has the right colours at once."""

from __future__ import annotations

import pytest
from django.test import Client

from tests.conversations.support import person

pytestmark = pytest.mark.django_db


def test_the_choice_holds_on_every_page(client: Client) -> None:
    """Signed in or not, on the pages and in the admin; and without scripts, because it is a form."""
    assert "data-theme=" not in client.get("/login/").text
    response = client.post("/theme/", {"theme": "dark"}, headers={"referer": "http://testserver/account/"})
    assert response["Location"] == "/account/"
    assert '<html lang="en" data-theme="dark">' in client.get("/login/").text
    client.force_login(person("chief", is_superuser=True, is_staff=True))
    for address in ("/", "/account/", "/no/such/page/"):
        html = client.get(address).text
        assert '<html lang="en" data-theme="dark">' in html
        assert '<meta name="color-scheme" content="dark">' in html
    assert 'value="dark" aria-pressed="true"' in client.get("/").text
    assert "x-data=\"theme('dark')\"" in client.get("/admin/").text


@pytest.mark.parametrize(
    "page",
    ["http://testserver//evil.example/x", "http://testserver///evil.example", "http://evil.example/x", "javascript:x"],
)
def test_no_page_of_another_site_is_led_to(client: Client, page: str) -> None:
    """Whatever page the browser says the form is on."""
    assert client.post("/theme/", {"theme": "dark"}, headers={"referer": page})["Location"] == "/"
    assert client.post("/c/", {"input": "Hi."}, headers={"referer": page})["Location"] == "/login/?next=/"


def test_the_choice_is_given_back_to_the_system(client: Client) -> None:
    client.post("/theme/", {"theme": "light"})
    client.post("/theme/", {"theme": ""})
    html = client.get("/login/").text
    assert "data-theme=" not in html
    assert '<meta name="color-scheme" content="light dark">' in html


def test_no_other_theme_is_taken(client: Client) -> None:
    assert client.post("/theme/", {"theme": '"><script>'}).status_code == 400
    client.cookies["theme"] = '"><script>'
    assert "<script>" not in client.get("/login/").text


def test_the_way_back_leads_to_no_other_site(client: Client) -> None:
    response = client.post("/theme/", {"theme": "dark"}, headers={"referer": "https://elsewhere.example/account/"})
    assert response["Location"] == "/"


def test_the_cookie_is_for_the_site_alone(client: Client, settings: object) -> None:
    settings.HTTPS = True  # type: ignore[attr-defined]
    cookie = client.post("/theme/", {"theme": "dark"}).cookies["theme"]
    assert (cookie["httponly"], cookie["samesite"], cookie["secure"]) == (True, "Lax", True)
