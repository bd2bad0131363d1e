"""Django system checks: the ledger is guarded, and commits are durable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags
from django.core.checks import register as register_check
from django.db import connections

from conversations.database import guard


def register() -> None:
    """Register the checks. `manage.py check --database default` runs them, and `migrate` unless told to skip checks."""
    register_check(ledger_is_guarded, Tags.database)
    register_check(commits_are_durable, Tags.database)


def ledger_is_guarded(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Check that the triggers exist wherever the ledger's table does."""
    errors: list[CheckMessage] = []
    for alias in databases or ():
        connection = connections[alias]
        if guard.STEPS in connection.introspection.table_names() and (names := guard.missing(connection)):
            errors.append(
                Error(
                    f"The ledger in database {alias!r} can be changed: the triggers {', '.join(names)} are missing.",
                    hint="Run `manage.py migrate --skip-checks`, which creates them.",
                    id="conversations.E001",
                )
            )
    return errors


def commits_are_durable(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Check that commits on PostgreSQL survive a power failure. For SQLite this is set on each connection."""
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
                    f"A power failure may lose commits of database {alias!r}: {' and '.join(names)} is off.",
                    hint="Turn it on in postgresql.conf, or for the role or database that overrides it.",
                    id="conversations.E002",
                )
            )
    return errors
