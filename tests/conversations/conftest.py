"""Fixtures shared by the tests of `conversations`."""

import ctypes
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from conversations.database import hints
from conversations.database.erasable_cache import CACHES
from tests.conversations.recorded import Site
from tests.conversations.support import person


@pytest.fixture(autouse=True)
def _empty_caches() -> None:
    """Each test has a site of its own, with its own tools and settings; a process serves one."""
    for cache in CACHES:
        cache.clear()


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


@pytest.fixture
def plain_rights() -> Iterator[None]:
    """Rights count, as they do for whoever is not root: this thread gives up what root may beyond them."""
    libc, header = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, this thread
    held, none = (ctypes.c_uint32 * 6)(), (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice
    assert libc.capget(header, held) == 0
    none[:] = [0 if place % 3 == 0 else right for place, right in enumerate(held)]
    assert libc.capset(header, none) == 0
    yield
    hints.flush()  # a thread that began meanwhile has not these rights either, and glibc would end the process for it
    assert libc.capset(header, held) == 0
