"""How much is tried: for a commit a few examples, the same each time, and of long tables a share; at night all."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

from hypothesis import settings

T = TypeVar("T")
NIGHTLY = os.environ.get("TEST_BUDGET") == "nightly"
"""Whether the larger budget is asked for, as `make nightly` does."""
TIMES = 10
"""How many times as many examples are tried at night."""


def examples(count: int) -> int:
    """Return how many examples to try where a commit tries this many."""
    return count * TIMES if NIGHTLY else count


def share(cases: Sequence[T], of: int) -> Sequence[T]:
    """Return all of these cases at night, and one in so many for a commit, which differ from commit to commit."""
    return cases if NIGHTLY else cases[commit_number() % of :: of]


@cache
def commit_number() -> int:
    """Return a number that differs from commit to commit; 0 if git does not know it."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent)
        return int(done.stdout.strip()[:7], 16)
    except (OSError, subprocess.CalledProcessError, ValueError):
        return 0


def set_budget() -> None:
    """Set what holds for every property test that does not say otherwise."""
    settings.register_profile("agentsite", max_examples=examples(100), derandomize=not NIGHTLY, deadline=None)
    settings.load_profile("agentsite")
