"""A database that is away: it was restarted, the connection was cut, or somebody else holds a lock for too long.

Whatever was to be written may or may not be: whoever goes on reads it first.
"""

from __future__ import annotations

from django.db import InterfaceError, OperationalError

from conversations.database.busy import is_busy
from conversations.database.disk import causes

_CLASSES = ("08", "57P")
"""SQLSTATEs of PostgreSQL begin so where the connection failed, or the server was stopped or is starting."""


def is_away(error: BaseException) -> bool:
    """Whether this error, or one that caused it, says so, and nothing about what was to be written."""
    return is_busy(error) or any(map(_is_cut_off, causes(error)))


def _is_cut_off(error: BaseException) -> bool:
    if not isinstance(error, OperationalError | InterfaceError):
        return False
    state = getattr(error.__cause__, "sqlstate", "")  # of psycopg's errors; None: the server gave no answer
    return state is None or state.startswith(_CLASSES)
