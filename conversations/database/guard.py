"""The guard: database triggers that refuse to change or delete steps.

Installed after every migration rather than by one: on SQLite, a later AlterField recreates the table and silently drops
its triggers. Steps of a conversation with an `Erasure` row may be deleted. The payload of a step with a `Redaction` row
may be replaced, once, and only by the announced payload: that row holds the SHA-256 of both.
"""

from __future__ import annotations

from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from conversations.models import Erasure, Redaction, Step

STEPS = Step._meta.db_table
ERASURES = Erasure._meta.db_table
REDACTIONS = Redaction._meta.db_table
MESSAGE = "the ledger is append-only"

FIXED_COLUMNS = [field.column for field in Step._meta.concrete_fields if field.column != "payload"]
"""The columns that not even a redaction may change."""

SQLITE = {  # SHA256 is a function that Django adds: other clients do not have it, and are refused
    "ledger_no_update": f"""
        CREATE TRIGGER ledger_no_update BEFORE UPDATE ON {STEPS}
        WHEN {" OR ".join(f"NEW.{column} IS NOT OLD.{column}" for column in FIXED_COLUMNS)} OR NOT EXISTS (
            SELECT 1 FROM {REDACTIONS} WHERE conversation_id = OLD.conversation_id AND seq = OLD.seq
            AND sha256 = SHA256(OLD.payload) AND left_sha256 = SHA256(NEW.payload))
        BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END""",
    "ledger_no_delete": f"""
        CREATE TRIGGER ledger_no_delete BEFORE DELETE ON {STEPS}
        WHEN NOT EXISTS (SELECT 1 FROM {ERASURES} WHERE conversation_id = OLD.conversation_id)
        BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END""",
}

POSTGRES_BODY = f"""
    BEGIN
        IF TG_OP = 'DELETE' THEN
            IF EXISTS (SELECT 1 FROM {ERASURES} WHERE conversation_id = OLD.conversation_id) THEN RETURN OLD; END IF;
        ELSIF TG_OP = 'UPDATE' THEN
            IF ({", ".join(f"NEW.{column}" for column in FIXED_COLUMNS)}) IS NOT DISTINCT FROM
               ({", ".join(f"OLD.{column}" for column in FIXED_COLUMNS)})
                AND EXISTS (SELECT 1 FROM {REDACTIONS} WHERE conversation_id = OLD.conversation_id AND seq = OLD.seq
                            AND sha256 = encode(sha256(convert_to(OLD.payload, 'UTF8')), 'hex')
                            AND left_sha256 = encode(sha256(convert_to(NEW.payload, 'UTF8')), 'hex'))
            THEN RETURN NEW; END IF;
        END IF;
        RAISE EXCEPTION '{MESSAGE}' USING ERRCODE = 'integrity_constraint_violation';
    END """
POSTGRES_FUNCTION = (
    f"CREATE OR REPLACE FUNCTION ledger_refuses() RETURNS trigger LANGUAGE plpgsql AS $${POSTGRES_BODY}$$"
)

POSTGRES = {
    name: f"CREATE TRIGGER {name} BEFORE {what} ON {STEPS} FOR EACH {each} EXECUTE FUNCTION ledger_refuses()"
    for name, what, each in (
        ("ledger_no_update", "UPDATE", "ROW"),
        ("ledger_no_delete", "DELETE", "ROW"),
        ("ledger_no_truncate", "TRUNCATE", "STATEMENT"),
    )
}


def triggers(connection: BaseDatabaseWrapper) -> dict[str, str]:
    """Return the required triggers: their names, with the SQL that creates each."""
    return POSTGRES if connection.vendor == "postgresql" else SQLITE


def missing(connection: BaseDatabaseWrapper) -> list[str]:
    """Return the names of required triggers that are absent or differ from ours."""
    standing = _on_postgres(connection) if connection.vendor == "postgresql" else _on_sqlite(connection)
    return [name for name in triggers(connection) if name not in standing]


def _on_sqlite(connection: BaseDatabaseWrapper) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [STEPS])
        return {name for name, sql in cursor.fetchall() if sql.split() == SQLITE.get(name, "").split()}


def _on_postgres(connection: BaseDatabaseWrapper) -> set[str]:
    """Return the triggers that are enabled, not only for replicas, and that call our function."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgname FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid"
            " WHERE tgrelid = %s::regclass AND tgenabled IN ('O', 'A') AND tgqual IS NULL AND prosrc = %s",
            [STEPS, POSTGRES_BODY],
        )
        return {name for (name,) in cursor.fetchall()}


def install(using: str = "default", **kwargs: Any) -> None:
    """Create the missing triggers, replacing those of another version. A receiver of `post_migrate`.

    Does nothing while the tables do not exist.
    """
    connection = connections[using]
    if not {STEPS, ERASURES, REDACTIONS} <= set(connection.introspection.table_names()):
        return
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(POSTGRES_FUNCTION)
        for name in missing(connection):
            cursor.execute(dropping(connection, name))
            cursor.execute(triggers(connection)[name])


def dropping(connection: BaseDatabaseWrapper, name: str) -> str:
    """Return the SQL that drops a trigger, if it exists."""
    return f"DROP TRIGGER IF EXISTS {name}{f' ON {STEPS}' if connection.vendor == 'postgresql' else ''}"
