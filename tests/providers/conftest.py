"""One wire server for all of these tests; each gives it a script of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from agents.providers.demo.server import WireServer
from agents.providers.responses import Responses
from tests.providers import KEY, MODELS


@pytest.fixture(scope="session")
def server() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


@pytest.fixture
def wire(server: WireServer) -> WireServer:
    server.script = []
    server.requests.clear()
    return server


@pytest.fixture
async def provider(wire: WireServer) -> AsyncIterator[Responses]:
    provider = Responses(KEY, wire.url, models=MODELS, read_seconds=5)
    yield provider
    await provider.aclose()
