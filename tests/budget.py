"""How much is tried: the same few examples each time for a commit, more and other ones at night."""

from __future__ import annotations

import os

from hypothesis import settings

NIGHTLY = os.environ.get("TEST_BUDGET") == "nightly"
"""Whether the larger budget is asked for, as `make nightly` does."""
TIMES = 10
"""How many times as many examples are tried at night."""


def examples(count: int) -> int:
    """Return how many examples to try where a commit tries this many."""
    return count * TIMES if NIGHTLY else count


def set_budget() -> None:
    """Set what holds for every property test that does not say otherwise."""
    settings.register_profile("agentsite", max_examples=examples(100), derandomize=not NIGHTLY, deadline=None)
    settings.load_profile("agentsite")
