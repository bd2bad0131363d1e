"""Fixtures shared by the tests of `conversations`."""

import pytest
from django.contrib.auth.models import User

from conversations.display.html_cache import html_cache
from tests.conversations.recorded import Site
from tests.conversations.support import person


@pytest.fixture(autouse=True)
def _empty_html_cache() -> None:
    """Each test has a site of its own, with its own tools and settings; a process serves one."""
    html_cache.clear()


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
