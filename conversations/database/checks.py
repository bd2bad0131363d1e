"""Django system checks: the ledger is guarded, changes are counted, and commits are durable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.core.checks import CheckMessage, Error, Tags
from django.core.checks import register as register_check
from django.db import connections

from conversations.database import changes, guard


def register() -> None:
    """Register the checks. `manage.py check --database default` runs them, and `migrate` unless told to skip checks."""
    register_check(ledger_is_guarded, Tags.database)
    register_check(changes_are_counted, Tags.database)
    register_check(commits_are_durable, Tags.database)


def ledger_is_guarded(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Check that the triggers exist wherever the ledger's table does."""
    told = "The ledger in database {!r} can be changed"
    return _missing(databases, guard.STEPS, guard.missing, told, "conversations.E001")


def changes_are_counted(databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """Check that the triggers exist by which workers notice what people change."""
    told = "Workers would not notice changes of rights, limits and skills in database {!r}"
    return _missing(databases, changes.COUNT, changes.missing, told, "conversations.E003")


def _missing(
    databases: Sequence[str] | None, table: str, missing: Callable[[Any], Sequence[str]], told: str, id: str
) -> list[CheckMessage]:
    """Return an error for each database that has this table, and not the triggers that `missing` looks for."""
    return [
        Error(
            f"{told.format(alias)}: the triggers {', '.join(names)} are missing or out of date.",
            hint="Run `manage.py migrate --skip-checks`, which creates them.",
            id=id,
        )
        for alias in databases or ()
        if table in connections[alias].introspection.table_names() and (names := missing(connections[alias]))
    ]


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
