"""What django-q2 runs: wake-ups that carry nothing. The truth is in the rows; one more or less changes nothing."""

from __future__ import annotations

from conversations.worker import drain as drains
from conversations.worker import hosts


def drain() -> int:
    """Run this host's prompts, if no other process of it does."""
    return drains.drain()


def beat(host: str) -> None:
    """Show that the cluster of this host still runs tasks."""
    hosts.beat(host)
