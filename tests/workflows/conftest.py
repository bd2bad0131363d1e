"""Fixtures of the tests of workflows: the site of the tests of conversations."""

from tests.conversations.conftest import *  # noqa: F403 - pytest finds fixtures by their names in this module
