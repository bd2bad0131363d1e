"""Fixtures of the API tests: users, turns and clients."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission, User
from django.core.cache import cache

from tests.api.client import Api, with_key
from tests.conversations.conftest import site

__all__ = ["site"]


def known(name: str, *permissions: str) -> User:
    """A user without a password, which would take time to hash: they use a key or a session."""
    user = User.objects.create_user(name)
    user.user_permissions.add(*Permission.objects.filter(codename__in=permissions))
    return user


@pytest.fixture
def ann(db: None) -> User:
    """A user who owns conversations."""
    return known("ann")


@pytest.fixture
def bob(db: None) -> User:
    """Another user, without any permission on others' conversations."""
    return known("bob")


@pytest.fixture
def kim(db: None) -> User:
    """A user who may decide for others."""
    return known("kim", "decide_approval")


@pytest.fixture(autouse=True)
def _nothing_counted() -> None:
    """Requests of earlier tests do not count against a limit."""
    cache.clear()


@pytest.fixture
def api(ann: User) -> Api:
    """Ann's client, with a key that has all scopes."""
    return with_key(ann)


@pytest.fixture
def other(bob: User) -> Api:
    """Bob's client."""
    return with_key(bob)


@pytest.fixture
def limited(ann: User) -> Callable[..., Api]:
    """Ann's client, with a key that has only these scopes."""
    return lambda *scopes: with_key(ann, *scopes)
