"""Fixtures of the engine's tests: tools that act on a counting world, and agents with these tools."""

import pytest

from tests.engine.cast import World


@pytest.fixture
def world() -> World:
    return World()
