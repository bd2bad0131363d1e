"""Every address of the site, every socket and every page of the admin, for everybody who may come (T-49, C10, I11).

The addresses are read from the URLconf: a new one without a row in the table fails, and so does a row without one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from pytest_django import DjangoDbBlocker

from tests.api.table import ADDRESSES, rows
from tests.api.world import ROLES, World, routes, written
from tests.workflows import shop

TABLE = rows(ADDRESSES)
STREAMS = [route for route in TABLE if route.endswith(("/events/", "/completions"))]
WRITTEN = {"o": "W", ">": "w"}
LETTERS = {200: "o", 201: "o", 202: "o", 400: "?", 401: "U", 403: "F", 404: "N", 405: "M", 409: "C", 503: "S"}


def at(row: str) -> str:
    """Return the route of a row."""
    return "" if row == "(home)" else row


def letter(response: HttpResponse, tables: list[str]) -> str:
    """Return the cell that stands for an answer."""
    if response.status_code == 302:
        found = "L" if "/login/" in response["Location"] else ">"
    else:
        found = LETTERS[response.status_code]
    return WRITTEN.get(found, f"{found}, but wrote {tables}") if tables else found


def asked(client: Client, method: str, address: str, **body: Any) -> str:
    """Send a request, and roll back what it did."""
    cookies = {name: morsel.value for name, morsel in client.cookies.items()}
    with written() as tables:
        response = getattr(client, method)(address, **body)
        if response.streaming and not response.is_async:
            b"".join(response.streaming_content)  # which closes the file
    client.cookies.load(cookies)
    return letter(response, tables)


def undone(client: Client, method: str, address: str, **body: Any) -> str:
    """Send a request that finds the world as all others do."""
    with transaction.atomic():
        found = asked(client, method, address, **body)
        transaction.set_rollback(True)
    return found


pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def one_world(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """The world of all rows: no row changes it."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield World()
        transaction.set_rollback(True)


@pytest.fixture
def world(one_world: World, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    """The world, and whatever a row changes is rolled back."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield one_world
        transaction.set_rollback(True)


@pytest.fixture(autouse=True)
def _workflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One workflow, which everybody may run."""
    with shop.registered(monkeypatch, shop.order):
        yield


def test_every_address_has_a_row_and_every_row_an_address() -> None:
    assert sorted(map(at, TABLE)) == sorted(set(routes()))  # one of the admin is behind one of ours


@pytest.mark.parametrize("row", [row for row in TABLE if row not in STREAMS])
def test_everybody_gets_what_is_theirs(row: str, world: World) -> None:
    """Each with a body that the owner's request would succeed with. A refused request, and any GET, writes nothing."""
    get, post = TABLE[row]
    address, found = world.address(at(row)), {"get": "", "post": ""}
    for role in ROLES:
        client = world.client(role)
        for method in found:
            found[method] += undone(client, method, address, **(world.body(at(row)) if method == "post" else {}))
    assert (found["get"], found["post"]) == (get, post)
    head = undone(world.client("owner"), "head", address)
    assert not {"w", "W"} & {*found["get"], head}, "a GET must not write"
    if found["get"][ROLES.index("owner")] == "M":
        assert head == "M"


@pytest.mark.parametrize("row", [row for row in TABLE if TABLE[row][0].startswith("U") and row not in STREAMS])
def test_a_key_for_models_alone_gets_nothing(row: str, world: World) -> None:
    """Though it is the owner's: neither by reading nor by writing, at any address that takes keys."""
    client = Client(headers={"Authorization": f"Bearer {world.models_key}"})
    for method in ("get", "head", "post"):
        body = world.body(at(row)) if method == "post" else {}
        assert asked(client, method, world.address(at(row)), **body) == "F", method


@pytest.mark.parametrize("row", [row for row in TABLE if set(TABLE[row][1]) & {"w", "W"} or "logout" in row])
def test_no_change_without_a_token_of_our_own_pages(row: str, world: World) -> None:
    """T-47, C8: a form that another site made a browser send is refused, whoever is signed in, and writes nothing."""
    for role in ("owner", "admin"):
        client = Client(enforce_csrf_checks=True)
        client.force_login(world.people[role])
        assert asked(client, "post", world.address(at(row)), **world.body(at(row))) == "F"


def test_what_changes_something_is_no_get() -> None:
    """T-47, C8: a URL that a POST changes answers GET and HEAD with 405, or shows the form."""
    shows = {
        "api/conversations/", "api/conversations/<int:pk>/prompts/", "api/uploads/", "api/triggers/",  # lists
        "c/<int:pk>/decide/", "c/<int:pk>/delete/", "c/<int:pk>/system-prompt/", "account/", "triggers/",
        "account/memory/", "account/memory/<int:pk>/", "account/memory/<int:pk>/forget/",
        "triggers/<int:pk>/mapping/",
        "workflows/<str:name>/",
        "workflows/<str:name>/filled/<int:pk>/", "workflows/batches/<int:pk>/delete/",
        "admin/conversations/approval/together/", "admin/conversations/approval/<path:object_id>/change/",
        "approvals/together/", "approvals/<int:pk>/",
        "admin/conversations/apikey/<path:object_id>/delete/", "admin/conversations/killswitch/",
    }  # fmt: skip
    writes = {row for row, (_, post) in TABLE.items() if set(post) & {"w", "W"}}
    assert {row for row in writes if set(TABLE[row][0]) - {"M", "U"}} == shows
