"""Fixtures shared by the attacks."""

from tests.plugins.conftest import desk

__all__ = ["desk"]
