"""Removing the guard of the ledger, for tests that change what nobody may change, and for those that flush tables."""

from django.db import connection

from conversations.database import guard


def remove_guard() -> None:
    """Drop the triggers. `guard.install` creates them again."""
    with connection.cursor() as cursor:
        for name in guard.triggers(connection):
            cursor.execute(guard.dropping(connection, name))
