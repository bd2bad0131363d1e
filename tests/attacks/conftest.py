"""Fixtures shared by the attacks."""

from tests.plugins.conftest import boxed, desk, mark

__all__ = ["boxed", "desk", "mark"]
