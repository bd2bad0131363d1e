"""Fixtures shared by the attacks."""

from tests.conversations.conftest import plain_rights
from tests.plugins.conftest import boxed, desk, mark

__all__ = ["boxed", "desk", "mark", "plain_rights"]
