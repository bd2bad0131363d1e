"""The guard: database triggers that refuse to change or delete steps and versions of system prompts.

Installed after every migration rather than by one: on SQLite, a later AlterField recreates the table and silently drops
its triggers. Steps of a conversation with an `Erasure` row may be deleted. The payload of a step with a `Redaction` row
may be replaced, once, and only by the announced payload: that row holds the SHA-256 of both. A system prompt that no
turn has used may be deleted, with its versions.
"""

from __future__ import annotations

from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

from agents.models import SystemPrompt, SystemPromptVersion
from conversations.models import Erasure, Redaction, Step

STEPS = Step._meta.db_table
ERASURES = Erasure._meta.db_table
REDACTIONS = Redaction._meta.db_table
VERSIONS = SystemPromptVersion._meta.db_table
PROMPTS = SystemPrompt._meta.db_table
MESSAGE = "the ledger is append-only"
VERSIONS_MESSAGE = "versions of system prompts are append-only"

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
    "versions_no_update": f"""
        CREATE TRIGGER versions_no_update BEFORE UPDATE ON {VERSIONS}
        BEGIN SELECT RAISE(ABORT, '{VERSIONS_MESSAGE}'); END""",
    "versions_no_delete": f"""
        CREATE TRIGGER versions_no_delete BEFORE DELETE ON {VERSIONS}
        WHEN EXISTS (SELECT 1 FROM {PROMPTS} WHERE id = OLD.prompt_id AND used)
        BEGIN SELECT RAISE(ABORT, '{VERSIONS_MESSAGE}'); END""",
    "prompts_no_delete": f"""
        CREATE TRIGGER prompts_no_delete BEFORE DELETE ON {PROMPTS} WHEN OLD.used
        BEGIN SELECT RAISE(ABORT, '{VERSIONS_MESSAGE}'); END""",
}

LEDGER_BODY = f"""
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
VERSIONS_BODY = f"""
    BEGIN
        IF TG_OP = 'DELETE' THEN
            IF NOT EXISTS (SELECT 1 FROM {PROMPTS} WHERE id = OLD.prompt_id AND used) THEN RETURN OLD; END IF;
        END IF;
        RAISE EXCEPTION '{VERSIONS_MESSAGE}' USING ERRCODE = 'integrity_constraint_violation';
    END """
PROMPTS_BODY = f"""
    BEGIN
        IF OLD.used THEN RAISE EXCEPTION '{VERSIONS_MESSAGE}' USING ERRCODE = 'integrity_constraint_violation'; END IF;
        RETURN OLD;
    END """
"""Unlike the trigger of the versions, it sees a turn that began to use the system prompt while this was deleted."""
POSTGRES_FUNCTIONS = {"ledger_refuses": LEDGER_BODY, "versions_refuse": VERSIONS_BODY, "prompts_refuse": PROMPTS_BODY}

POSTGRES = {
    f"{guarded}_no_{what.lower()}": f"CREATE TRIGGER {guarded}_no_{what.lower()} BEFORE {what} ON {table}"
    f" FOR EACH {each} EXECUTE FUNCTION {function}()"
    for guarded, table, function in (("ledger", STEPS, "ledger_refuses"), ("versions", VERSIONS, "versions_refuse"))
    for what, each in (("UPDATE", "ROW"), ("DELETE", "ROW"), ("TRUNCATE", "STATEMENT"))
} | {
    "prompts_no_delete": f"CREATE TRIGGER prompts_no_delete BEFORE DELETE ON {PROMPTS}"
    " FOR EACH ROW EXECUTE FUNCTION prompts_refuse()"
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
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        return {name for name, sql in cursor.fetchall() if sql.split() == SQLITE.get(name, "").split()}


def _on_postgres(connection: BaseDatabaseWrapper) -> set[str]:
    """Return the triggers that are enabled, not only for replicas, and that call our functions."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT tgname FROM pg_trigger JOIN pg_proc ON pg_proc.oid = tgfoid"
            " WHERE (tgrelid, prosrc) IN ((%s::regclass, %s), (%s::regclass, %s), (%s::regclass, %s))"
            " AND tgenabled IN ('O', 'A') AND tgqual IS NULL",
            [STEPS, LEDGER_BODY, VERSIONS, VERSIONS_BODY, PROMPTS, PROMPTS_BODY],
        )
        return {name for (name,) in cursor.fetchall()}


def install(using: str = "default", **kwargs: Any) -> None:
    """Create the missing triggers, replacing those of another version. A receiver of `post_migrate`.

    Does nothing while the tables do not exist.
    """
    connection = connections[using]
    if not {STEPS, ERASURES, REDACTIONS, VERSIONS, PROMPTS} <= set(connection.introspection.table_names()):
        return
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            for function, body in POSTGRES_FUNCTIONS.items():
                cursor.execute(
                    f"CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS $${body}$$"
                )
        for name in missing(connection):
            cursor.execute(dropping(connection, name))
            cursor.execute(triggers(connection)[name])


def dropping(connection: BaseDatabaseWrapper, name: str) -> str:
    """Return the SQL that drops a trigger, if it exists."""
    table = {"ledger": STEPS, "versions": VERSIONS, "prompts": PROMPTS}[name.partition("_")[0]]
    return f"DROP TRIGGER IF EXISTS {name}{f' ON {table}' if connection.vendor == 'postgresql' else ''}"
