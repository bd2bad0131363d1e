"""Every stream and every socket of the site, for everybody who may come (T-43, T-49). They run in other threads."""

from __future__ import annotations

from typing import Any

import pytest
from channels.routing import URLRouter
from django.test import Client

from conversations.push.routing import sockets
from tests.api.table import SOCKETS, rows
from tests.api.test_matrix import STREAMS, TABLE, asked
from tests.api.world import ROLES, World
from tests.conversations.listening import aside, cookie, opened

CLOSED = {4401: "U", 4403: "F", 4404: "N"}


def test_every_socket_has_a_row() -> None:
    assert isinstance(sockets, URLRouter)
    assert [str(route.pattern) or "(nowhere)" for route in sockets.routes] == list(rows(SOCKETS))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("row", STREAMS)
def test_streams_are_the_owners(row: str) -> None:
    """They run in threads of their own, on their own connections."""
    world, (get, post) = World(), TABLE[row]
    for method, expected in (("get", get), ("post", post)):
        assert "".join(asked(world.client(role), method, world.address(row)) for role in ROLES) == expected
    models_alone = Client(headers={"Authorization": f"Bearer {world.models_key}"})
    assert asked(models_alone, "get", world.address(row)) == "F"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("row", list(rows(SOCKETS)))
async def test_sockets_open_for_whom_they_are(row: str) -> None:
    """T-43, T-49: the same people, over each socket."""
    world = await aside(World)
    found = ""
    for role in ROLES:
        session = await aside(cookie, world.people[role]) if role in world.people else ""
        key, address = (world.key if role == "key" else ""), "/" + row.replace("<int:pk>", str(world.idle.pk))
        async with opened(address, session, key=key) as (listener, first):
            found += await outcome(listener, first)
    assert found == rows(SOCKETS)[row][0]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("row", list(rows(SOCKETS)))
async def test_a_key_for_models_alone_opens_no_socket(row: str) -> None:
    """It is refused before the socket is accepted, like a bad one."""
    world = await aside(World)
    address = "/" + row.replace("<int:pk>", str(world.idle.pk))
    async with opened(address, key=world.models_key) as (listener, first):
        assert await outcome(listener, first) == "-"


async def outcome(listener: Any, first: dict[str, Any]) -> str:
    """Return the cell that stands for the outcome of a socket."""
    if first["type"] == "websocket.close":
        return "-"
    second = await listener.receive()
    return CLOSED[second["code"]] if second["type"] == "websocket.close" else "o"
