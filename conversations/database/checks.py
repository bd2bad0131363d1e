"""System checks of the record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags
from django.core.checks import register as register_check
from django.db import connections

from conversations.database import guard


def register() -> None:
    """Make the checks part of `manage.py check --database default`, and of a `migrate` that does not skip them."""
    register_check(ledger_is_guarded, Tags.database)
    register_check(commits_are_durable, Tags.database)


def ledger_is_guarded(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """The triggers stand wherever the ledger's table does."""
    errors: list[CheckMessage] = []
    for alias in databases or ():
        connection = connections[alias]
        if guard.STEPS in connection.introspection.table_names() and (names := guard.missing(connection)):
            errors.append(
                Error(
                    f"The ledger in database {alias!r} can be changed: the triggers {', '.join(names)} are missing.",
                    hint="Run `manage.py migrate --skip-checks`, which puts them up.",
                    id="conversations.E001",
                )
            )
    return errors


def commits_are_durable(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """What PostgreSQL says it has stored survives a loss of power. SQLite is told so at each connection."""
    errors: list[CheckMessage] = []
    for alias in databases or ():
        connection = connections[alias]
        if connection.vendor != "postgresql":
            continue
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT name FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit') AND setting = 'off'"
                " ORDER BY name"
            )
            names = [name for (name,) in cursor.fetchall()]
        if names:
            errors.append(
                Error(
                    f"A loss of power may lose what database {alias!r} has stored: {' and '.join(names)} is off.",
                    hint="Turn it on in PostgreSQL: in postgresql.conf, or for a role or database that has its own.",
                    id="conversations.E002",
                )
            )
    return errors
