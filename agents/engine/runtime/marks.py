"""Marks on policies: how the runtime records the calls of a policy, said by whoever wrote it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Marked = TypeVar("Marked", bound=Callable[..., Any])


def records_itself(policy: Marked) -> Marked:
    """Mark a policy that records something before it reaches outside: its call is recorded together with that."""
    policy.records_itself = policy  # type: ignore[attr-defined]
    return policy


def is_marked(policy: Callable[..., Any], mark: str) -> bool:
    """Whether the policy itself has this mark, rather than what it wraps, from which functools.wraps copied it."""
    value = getattr(policy, mark, None)
    return value is True or value is policy
