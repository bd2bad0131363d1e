"""One model server and one site in front of it for all of these tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.passthrough.site import Leg, Site, running
from tests.passthrough.upstream import Answer, Upstream

DIRECT_KEY = "sk-of-the-client"


@pytest.fixture(scope="package")
def server() -> Iterator[Upstream]:
    with Upstream() as upstream:
        yield upstream


@pytest.fixture(scope="package")
def site(server: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The site. Its requests a minute are unlimited, because these tests are one busy client."""
    with running(tmp_path_factory.mktemp("wire"), server.url, AGENTSITE_PASSTHROUGH_REQUESTS_A_MINUTE="0") as site:
        yield site


@pytest.fixture
def upstream(server: Upstream) -> Upstream:
    """The model server, with nothing received yet. It answers everything, until a test says how."""
    server.answers(Answer(b"{}"))
    return server


@pytest.fixture
def direct(upstream: Upstream) -> Leg:
    """The way straight to the model server."""
    return Leg("direct", upstream.url, DIRECT_KEY)


@pytest.fixture(scope="package")
def through_site(site: Site) -> Leg:
    """The way through the site, with one key for all: what they share is the same key, as in life."""
    return site.leg()


@pytest.fixture
def legs(direct: Leg, through_site: Leg) -> tuple[Leg, Leg]:
    """Both ways to the model server."""
    return direct, through_site


@pytest.fixture
def leg(upstream: Upstream, through_site: Leg) -> Leg:
    """The way through the site alone."""
    return through_site
