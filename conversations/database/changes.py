"""Counting how often people have changed what all turns rely on: limits, skills, and who may use the site.

Turns ask for these in each round, and people change them once a day. So drains keep them in memory
(`conversations.worker.kept`) until this count changes. They read it with each claim, each record and each look, and no
record changes it. Triggers count, so that no change is missed: neither one in bulk, nor one by another program.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_user_model
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Model

from agents.models import Blueprint, MemoryStanding, Skill
from conversations.models import ChangeCount, Quota

COUNT = ChangeCount._meta.db_table
NUMBER = f"COALESCE((SELECT number FROM {COUNT} WHERE id = 1), 0)"
"""SQL for the count."""
FUNCTION = "changes_count"
"""The function of the triggers on PostgreSQL."""

_RAISE = f"INSERT INTO {COUNT} (id, number) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET number = {COUNT}.number + 1"
_BODY = f"BEGIN {_RAISE}; RETURN NULL; END"


def _counted() -> dict[type[Model], tuple[str, ...]]:
    """Return the tables whose changes count, and which changes."""
    every, people = ("INSERT", "UPDATE", "DELETE"), get_user_model()
    whole = (Quota, Skill, Blueprint, Blueprint.groups.through, people.groups.through)
    counted: dict[type[Model], tuple[str, ...]] = dict.fromkeys(whole, every)
    counted[MemoryStanding] = ("INSERT", "UPDATE OF is_on", "DELETE")
    return {**counted, people: ("UPDATE OF is_active", "DELETE")}


def triggers(connection: BaseDatabaseWrapper) -> dict[str, tuple[str, str]]:
    """Return the required triggers: their names, each with its table and the SQL that creates it."""
    postgres = connection.vendor == "postgresql"
    does = f"FOR EACH STATEMENT EXECUTE FUNCTION {FUNCTION}()" if postgres else f"BEGIN {_RAISE}; END"
    found = {}
    for model, events in _counted().items():
        table = model._meta.db_table
        for event in (*events, *(("TRUNCATE",) if postgres else ())):
            name = f"counts_{event.split()[0].lower()}_{table}"
            found[name] = (table, f"CREATE TRIGGER {name} AFTER {event} ON {table} {does}")
    return found


def missing(connection: BaseDatabaseWrapper) -> list[str]:
    """Return the names of required triggers that are absent, turned off, or differ from ours."""
    standing = _on_postgres(connection) if connection.vendor == "postgresql" else _on_sqlite(connection)
    return [name for name, (_, sql) in triggers(connection).items() if standing.get(name) != sql]


def _on_sqlite(connection: BaseDatabaseWrapper) -> dict[str, str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        return dict(cursor.fetchall())


def _on_postgres(connection: BaseDatabaseWrapper) -> dict[str, str]:
    """Return the triggers that call our function and are not off, nor only for replicas, as PostgreSQL writes them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgname, pg_get_triggerdef(pg_trigger.oid, true) FROM pg_trigger"
            " JOIN pg_proc ON pg_proc.oid = tgfoid WHERE prosrc = %s AND tgenabled IN ('O', 'A')",
            [_BODY],
        )
        return dict(cursor.fetchall())


def install(using: str = "default", **kwargs: Any) -> None:
    """Create the triggers anew. A receiver of `post_migrate`. Does nothing while the tables do not exist.

    Each is replaced at once, since workers may run meanwhile. What changed while one was missing counts now.
    """
    connection = connections[using]
    required = triggers(connection)
    if not {COUNT, *(table for table, _ in required.values())} <= set(connection.introspection.table_names()):
        return
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"CREATE OR REPLACE FUNCTION {FUNCTION}() RETURNS trigger LANGUAGE plpgsql AS $${_BODY}$$")
        for name, (table, sql) in required.items():
            on = f" ON {table}" if connection.vendor == "postgresql" else ""
            with transaction.atomic(using):  # one at a time: a lock on several tables could end in a deadlock
                cursor.execute(f"DROP TRIGGER IF EXISTS {name}{on}")
                cursor.execute(sql)
        cursor.execute(_RAISE)
