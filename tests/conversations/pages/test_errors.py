"""Error pages: in the style of the site, with a way back, and without internal details."""

from __future__ import annotations

import pytest
from django.http import HttpRequest
from django.test import Client, RequestFactory

from conversations.api import errors
from tests.conversations.support import person

pytestmark = pytest.mark.django_db
BACK = '<a class="btn primary" href="/">Go to your conversations</a>'


def refused() -> tuple[Client, str, str]:
    client = Client()
    client.force_login(person("staff", is_staff=True))
    return client, "/admin/auth/user/", "You don't have permission to do this"


def missing() -> tuple[Client, str, str]:
    return Client(), "/no/such/page/", "Page not found"


@pytest.mark.parametrize(("status", "story"), [(403, refused), (404, missing)])
def test_what_is_not_there_or_not_theirs(status: int, story: object) -> None:
    client, address, words = story()  # type: ignore[operator]
    response = client.get(address)
    assert response.status_code == status
    assert f"<h1>{words}</h1>" in response.text
    assert BACK in response.text


def test_a_form_that_proves_nothing_says_what_to_do() -> None:
    """With the chosen theme: it is a page like any other."""
    client = Client(enforce_csrf_checks=True)
    client.cookies["theme"] = "dark"
    response = client.post("/login/", {"username": "anna", "password": "secret"})
    assert response.status_code == 403
    assert "<h1>Your request was not accepted</h1>" in response.text
    assert "Go back, reload the page and try again." in response.text
    assert 'data-theme="dark"' in response.text
    assert "secret" not in response.text


def test_a_request_that_makes_no_sense(rf: RequestFactory) -> None:
    response = errors.bad_request(rf.get("/c/1/"), ValueError("the secret inside"))
    assert response.status_code == 400
    assert "<h1>Bad request</h1>" in response.text
    assert BACK in response.text
    assert "secret" not in response.text


def test_a_fault_of_ours_needs_nothing_of_the_site(rf: RequestFactory, django_assert_num_queries: object) -> None:
    """The page is the same for everybody, because whatever it needs may be what is broken."""
    request: HttpRequest = rf.get("/c/1/")
    with django_assert_num_queries(0):  # type: ignore[operator]
        response = errors.server_error(request)
    assert response.status_code == 500
    assert "<h1>Something went wrong</h1>" in response.text
    assert BACK in response.text
