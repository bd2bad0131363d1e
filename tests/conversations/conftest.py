"""Fixtures shared by the tests of `conversations`."""

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
    """A site that can run turns."""
    return Site(monkeypatch)


@pytest.fixture
def ann(db: None) -> User:
    """A user who owns conversations."""
    return person("ann")


@pytest.fixture
def bob(db: None) -> User:
    """Another user, without permissions on others' conversations."""
    return person("bob")


@pytest.fixture
def kim(db: None) -> User:
    """A user who may decide for others."""
    return person("kim", "decide_approval")
