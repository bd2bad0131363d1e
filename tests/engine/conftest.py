"""The cast of the engine's tests: tools that act on a world that counts, and agents that have them."""

import pytest

from tests.engine.cast import World


@pytest.fixture
def world() -> World:
    return World()
