"""The database's own refusal to change or delete steps.

Installed after every migration and not by one: on SQLite a later AlterField remakes the table and silently drops its
triggers. Steps of a conversation with an `Erasure` row are let go.
"""

from __future__ import annotations

from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from conversations.models import Erasure, Step

STEPS = Step._meta.db_table
ERASURES = Erasure._meta.db_table
MESSAGE = "the ledger is append-only"

SQLITE = {
    "ledger_no_update": f"""
        CREATE TRIGGER ledger_no_update BEFORE UPDATE ON {STEPS}
        BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END""",
    "ledger_no_delete": f"""
        CREATE TRIGGER ledger_no_delete BEFORE DELETE ON {STEPS}
        WHEN NOT EXISTS (SELECT 1 FROM {ERASURES} WHERE conversation_id = OLD.conversation_id)
        BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END""",
}

POSTGRES_FUNCTION = f"""
    CREATE OR REPLACE FUNCTION ledger_refuses() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF TG_OP = 'DELETE' THEN
            IF EXISTS (SELECT 1 FROM {ERASURES} WHERE conversation_id = OLD.conversation_id) THEN RETURN OLD; END IF;
        END IF;
        RAISE EXCEPTION '{MESSAGE}' USING ERRCODE = 'integrity_constraint_violation';
    END $$"""

POSTGRES = {
    "ledger_no_update": f"CREATE TRIGGER ledger_no_update BEFORE UPDATE ON {STEPS}"
    " FOR EACH ROW EXECUTE FUNCTION ledger_refuses()",
    "ledger_no_delete": f"CREATE TRIGGER ledger_no_delete BEFORE DELETE ON {STEPS}"
    " FOR EACH ROW EXECUTE FUNCTION ledger_refuses()",
    "ledger_no_truncate": f"CREATE TRIGGER ledger_no_truncate BEFORE TRUNCATE ON {STEPS}"
    " FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuses()",
}


def triggers(connection: BaseDatabaseWrapper) -> dict[str, str]:
    """The triggers that must stand, by name, with the SQL that makes each."""
    return POSTGRES if connection.vendor == "postgresql" else SQLITE


def missing(connection: BaseDatabaseWrapper) -> list[str]:
    """The names of the triggers that do not stand."""
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            on = "tgenabled IN ('O', 'A')"  # not disabled, and not for replicas alone
            cursor.execute(f"SELECT tgname FROM pg_trigger WHERE tgrelid = %s::regclass AND {on}", [STEPS])
        else:
            cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = %s", [STEPS])
        standing = {name for (name,) in cursor.fetchall()}
    return [name for name in triggers(connection) if name not in standing]


def install(using: str = "default", **kwargs: Any) -> None:
    """Put up what is missing. A receiver of `post_migrate`; does nothing while the tables are not there."""
    connection = connections[using]
    tables = connection.introspection.table_names()
    if STEPS not in tables or ERASURES not in tables:
        return
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(POSTGRES_FUNCTION)
        for name in missing(connection):
            cursor.execute(triggers(connection)[name])


def lift(using: str = "default") -> None:
    """Take the triggers down: for tests that flush the database between them."""
    connection = connections[using]
    with connection.cursor() as cursor:
        for name in triggers(connection):
            on = f" ON {STEPS}" if connection.vendor == "postgresql" else ""
            cursor.execute(f"DROP TRIGGER IF EXISTS {name}{on}")
