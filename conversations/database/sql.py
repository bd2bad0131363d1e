"""SQL fragments for hand-written statements: the database's clock, notifications, and deleting drafts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from django.db import connection

CHANNEL = "agentsite"
"""The PostgreSQL channel that announces, at each commit, which conversations have new steps or drafts."""


def returning_notify(conversation: str) -> str:
    """Return SQL to end a statement that changes rows: it notifies listeners of the conversation in this column.

    It is part of a statement that is sent anyway, so it costs no round trip. On SQLite, listeners poll instead.
    """
    return f"RETURNING pg_notify('{CHANNEL}', {conversation}::text)" if connection.vendor == "postgresql" else ""


def notify_all() -> None:
    """Have listeners look at everything once the open transaction commits. On SQLite, they do so anyway."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, '')", [CHANNEL])


def now() -> str:
    """Return SQL for the time by the database's clock, in seconds since 1970."""
    if connection.vendor == "postgresql":
        return "extract(epoch from clock_timestamp())::float8"
    return "((julianday('now') - 2440587.5) * 86400.0)"


def database_time() -> float:
    """Return the seconds since 1970 by the database's clock. The clocks of workers may differ."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {now()}")
        value: float = cursor.fetchone()[0]
    return value


def claim_age() -> str:
    """Return SQL for the seconds since a prompt was claimed; 0 if nobody holds its lease."""
    return f"CASE WHEN lease_until > 0 THEN {now()} - claimed_at ELSE 0 END"


def placeholders(count: int) -> str:
    """Return SQL placeholders for this number of values."""
    return ", ".join(["%s"] * count)


def in_list(words: Iterable[str]) -> str:
    """Return SQL for a list of words, not escaped, so only for constants: ('queued', 'running')."""
    quoted = ", ".join(f"'{word}'" for word in words)
    return f"({quoted})"


def drop_drafts(cursor: Any, prompt: int, paths: Sequence[str] | None) -> None:
    """Delete the drafts of a prompt at these paths; all of them if `paths` is None."""
    at = "" if paths is None else f" AND path IN ({placeholders(len(paths))})"
    cursor.execute(f"DELETE FROM conversations_draft WHERE prompt_id = %s{at}", [prompt, *(paths or ())])
