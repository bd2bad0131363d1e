"""Pieces of SQL for what is written by hand: the database's clock, its channel, and drafts that go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection

CHANNEL = "agentsite"
"""Where PostgreSQL tells, at each commit, which conversations have new steps or drafts."""


def returning_notify(conversation: str) -> str:
    """SQL at the end of a statement that changes rows: what listens learns of the conversation in this column.

    Part of a statement that is sent anyway, so it costs no round trip. On SQLite who listens looks for itself.
    """
    return f"RETURNING pg_notify('{CHANNEL}', {conversation}::text)" if connection.vendor == "postgresql" else ""


def notify_all() -> None:
    """Have what listens look at everything once the open transaction is committed; on SQLite it does by itself."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, '')", [CHANNEL])


def now() -> str:
    """SQL for the time by the database's clock, in seconds since 1970."""
    if connection.vendor == "postgresql":
        return "extract(epoch from clock_timestamp())::float8"
    return "((julianday('now') - 2440587.5) * 86400.0)"


def database_time() -> float:
    """Seconds since 1970 by the database's clock: workers' own clocks may differ."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {now()}")
        value: float = cursor.fetchone()[0]
    return value


def claim_age() -> str:
    """SQL for the seconds since the claim of a prompt whose lease is held; 0 otherwise."""
    return f"CASE WHEN lease_until > 0 THEN {now()} - claimed_at ELSE 0 END"


def placeholders(count: int) -> str:
    """SQL for the places of so many values."""
    return ", ".join(["%s"] * count)


def in_list(words: Iterable[str]) -> str:
    """SQL for the list of these words, which are names of our own: ('queued', 'running')."""
    quoted = ", ".join(f"'{word}'" for word in words)
    return f"({quoted})"


def drop_drafts(cursor: Any, prompt: int, paths: Sequence[str] | None) -> None:
    """Take away the drafts of a prompt at these paths; None: all of them."""
    at = "" if paths is None else f" AND path IN ({placeholders(len(paths))})"
    cursor.execute(f"DELETE FROM conversations_draft WHERE prompt_id = %s{at}", [prompt, *(paths or ())])
