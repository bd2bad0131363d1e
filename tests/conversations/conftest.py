"""What tests of the record share."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from conversations.database import guard
from tests.conversations.recorded import Site
from tests.conversations.support import person


@pytest.fixture(autouse=True)
def _lifted_for_flushes(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test with transactions of its own ends with a flush, which the ledger's triggers refuse: they are lifted then.

    They stand while the test runs, and again after it.
    """
    marker = request.node.get_closest_marker("django_db")
    if not (marker and marker.kwargs.get("transaction")) and "transactional_db" not in request.fixturenames:
        yield
        return
    request.getfixturevalue("transactional_db")
    guard.install()
    yield
    guard.uninstall()


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site whose turns can be run."""
    return Site(monkeypatch)


@pytest.fixture
def ann(db: None) -> User:
    """Somebody who owns conversations."""
    return person("ann")


@pytest.fixture
def bob(db: None) -> User:
    """Somebody else, without any permission on others' conversations."""
    return person("bob")


@pytest.fixture
def kim(db: None) -> User:
    """Somebody who may decide for others."""
    return person("kim", "decide_approval")
