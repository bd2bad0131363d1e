"""SQL fragments for hand-written statements: the database's clock, lists of values, and deleting drafts and secrets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db import connection
from django.db.models import CharField, FloatField, Func


def now() -> str:
    """Return SQL for the time by the database's clock, in seconds since 1970."""
    if connection.vendor == "postgresql":
        return "extract(epoch from clock_timestamp())::float8"
    return "((julianday('now') - 2440587.5) * 86400.0)"


class Clock(Func):
    """The same for queries of the ORM."""

    output_field = FloatField()

    def as_sql(self, *_args: Any, **_options: Any) -> tuple[str, tuple[()]]:
        """Return the SQL, which has no parameters."""
        return now(), ()


class Literal(Func):
    """A word in the text of a query of the ORM, not escaped, so only for constants.

    SQLite uses an index on some of the rows only where the text says that no others are asked for.
    """

    output_field = CharField()

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = str(word)

    def as_sql(self, *_args: Any, **_options: Any) -> tuple[str, tuple[()]]:
        """Return the SQL, which has no parameters."""
        return f"'{self.word}'", ()


def database_time() -> float:
    """Return the seconds since 1970 by the database's clock. The clocks of workers may differ."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {now()}")
        value: float = cursor.fetchone()[0]
    return value


def claim_age() -> str:
    """Return SQL for the seconds since a prompt was claimed; 0 if nobody holds its lease."""
    return f"CASE WHEN lease_until > 0 THEN {now()} - claimed_at ELSE 0 END"


def read_time(value: datetime) -> datetime:
    """Return a time that a hand-written statement has read, with its zone: SQLite knows none."""
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def placeholders(count: int) -> str:
    """Return SQL placeholders for this number of values."""
    return ", ".join(["%s"] * count)


def in_list(words: Iterable[str]) -> str:
    """Return SQL for a list of words, not escaped, so only for constants: ('queued', 'running')."""
    quoted = ", ".join(f"'{word}'" for word in words)
    return f"({quoted})"


def drop_drafts(cursor: Any, conversation: int, prompt: int, paths: Sequence[str] | None) -> None:
    """Delete the drafts of a prompt at these paths; all of them if `paths` is None."""
    at = "" if paths is None else f" AND path IN ({placeholders(len(paths))})"
    where = f"conversation_id = %s AND prompt_id = %s{at}"
    cursor.execute(f"DELETE FROM conversations_draft WHERE {where}", [conversation, prompt, *(paths or ())])


def drop_secrets(cursor: Any, conversation: int, prompt: int) -> None:
    """Delete the secrets that a prompt was given."""
    cursor.execute(
        "DELETE FROM conversations_runsecret WHERE conversation_id = %s AND prompt_id = %s", [conversation, prompt]
    )
