"""What tests of the API share: people, turns and clients."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Permission, User
from django.core.cache import cache

from tests.api.client import Api, with_key
from tests.conversations.conftest import _lifted_for_flushes, site

__all__ = ["_lifted_for_flushes", "site"]


def known(name: str, *permissions: str) -> User:
    """Somebody without a password, which takes time to hash; they come with a key or a session."""
    user = User.objects.create_user(name)
    user.user_permissions.add(*Permission.objects.filter(codename__in=permissions))
    return user


@pytest.fixture
def ann(db: None) -> User:
    """Somebody who owns conversations."""
    return known("ann")


@pytest.fixture
def bob(db: None) -> User:
    """Somebody else, without any permission on others' conversations."""
    return known("bob")


@pytest.fixture
def kim(db: None) -> User:
    """Somebody who may decide for others."""
    return known("kim", "decide_approval")


@pytest.fixture(autouse=True)
def _nothing_counted() -> None:
    """No request of an earlier test counts against a limit."""
    cache.clear()


@pytest.fixture
def api(ann: User) -> Api:
    """Ann's program, with a key for everything."""
    return with_key(ann)


@pytest.fixture
def other(bob: User) -> Api:
    """Bob's program."""
    return with_key(bob)


@pytest.fixture
def limited(ann: User) -> Callable[..., Api]:
    """Ann's program, with a key for these scopes alone."""
    return lambda *scopes: with_key(ann, *scopes)
