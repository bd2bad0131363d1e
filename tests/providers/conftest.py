"""One wire server for all of these tests; each gives it a script of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from agents.engine.interfaces.provider import Provider
from agents.providers.common.server import ModelServer
from agents.providers.responses.protocol import Responses
from tests.providers.support import KEY, MODELS, PROTOCOLS
from tests.wire.server import WireServer


@pytest.fixture(scope="session")
def server() -> Iterator[WireServer]:
    with WireServer() as server:
        yield server


@pytest.fixture
def wire(server: WireServer) -> WireServer:
    server.script, server.strict_turns = [], False
    server.requests.clear()
    return server


@pytest.fixture
async def provider(wire: WireServer) -> AsyncIterator[Responses]:
    provider = Responses(ModelServer(KEY, wire.url, models=MODELS, read_seconds=5))
    yield provider
    await provider.aclose()


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    """Each protocol in turn, for what holds in all of them."""
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["plain", "strict"])
def strict(request: pytest.FixtureRequest) -> bool:
    """Whether the server insists on roles that alternate, and the provider is set up for that."""
    return bool(request.param)


@pytest.fixture
async def speaker(protocol: str, strict: bool, wire: WireServer) -> AsyncIterator[Provider]:
    """The provider that speaks `protocol`."""
    wire.strict_turns = strict
    server = ModelServer(KEY, wire.url, models=MODELS, read_seconds=5, needs_user=strict)
    provider = PROTOCOLS[protocol](server)
    yield provider
    await provider.aclose()
