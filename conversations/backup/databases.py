"""Copying and restoring the database: SQLite by its own means, PostgreSQL with pg_dump, pg_restore and psql."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from django.db import connection

from conversations.backup.manifest import APPLIED, HEADS, BackupFailed, DatabaseState
from conversations.database import changes, guard

HELD_UNTIL = 4_102_444_800.0
"""The year 2100. Restored turns are leased until then, to nobody: no worker may claim one before `make_safe`."""
SETTLE = (
    "UPDATE {schema}conversations_prompt SET lease_until = {until} WHERE ended_at IS NULL",
    "DELETE FROM {schema}django_q_schedule",  # tasks name functions to call, whatever the archive says
    "DELETE FROM {schema}django_q_ormq",
    "DELETE FROM {schema}conversations_runsecret",  # no backup has any, whatever the archive says
)
"""What is done to a restored database before anybody can use it."""
LEFT_OUT = ("django_session", "conversations_runsecret")
"""Tables of which a backup has no rows. Browsers sign in with keys of sessions, and still could; the secrets of a run
are for that run alone."""
BUSY_SECONDS = 20
MIGRATIONS = "django_migrations"
"""The one table of Django that belongs to no installed app."""


def copy(target: Path) -> DatabaseState:
    """Copy the database, as it is at one moment, into the file `target`; return its state. Raises BackupFailed."""
    return _copy_postgresql(target) if connection.vendor == "postgresql" else _copy_sqlite(target)


def restore(source: Path) -> None:
    """Replace the content of the database with that of the file `source`, completely or not at all.

    Every turn that has not ended is held, so that no worker claims it, and no task is scheduled or queued. Raises
    BackupFailed.
    """
    if connection.vendor == "postgresql":
        _restore_postgresql(source)
    else:
        _restore_sqlite(source)


def state() -> DatabaseState:
    """Return the state of this database."""
    with connection.cursor() as cursor:
        cursor.execute(APPLIED)
        applied = cursor.fetchall()
        cursor.execute(HEADS)
        return DatabaseState.of(applied, cursor.fetchall())


# SQLite


def _copy_sqlite(target: Path) -> DatabaseState:
    """Copy row by row, not page by page, which may still contain what was erased. One file, without a log beside it."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM INTO %s", [str(target)])
    with closing(_connect(target)) as copied:
        for table in LEFT_OUT:
            copied.execute(f"DELETE FROM {table}")  # noqa: S608 - one of the names above
        copied.commit()
        copied.execute("VACUUM")  # the pages still contain what was deleted
        return DatabaseState.of(copied.execute(APPLIED), copied.execute(HEADS))


def _restore_sqlite(source: Path) -> None:
    database = Path(connection.settings_dict["NAME"])
    connection.close()
    try:
        with closing(_connect(source)) as copied, closing(_connect(database)) as target:
            for statement in SETTLE:
                copied.execute(statement.format(schema="", until=HELD_UNTIL))
            copied.commit()
            copied.backup(target)  # in one transaction: after a crash the old content is there
    except sqlite3.Error as error:
        raise BackupFailed(f"The database of the archive could not be restored: {error}") from error


def _connect(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(file, timeout=BUSY_SECONDS)


# PostgreSQL


def _copy_postgresql(target: Path) -> DatabaseState:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        try:
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")  # it waits for pg_dump
            cursor.execute("SELECT pg_export_snapshot()")
            snapshot = cursor.fetchone()[0]
            copied = state()
            # No `public.` schema, owners or privileges: the other server decides these.
            without = [f"--exclude-table-data=*.{table}" for table in LEFT_OUT]
            options = ("-Fc", "--no-owner", "--no-privileges", f"--snapshot={snapshot}", f"--file={target}")
            _run("pg_dump", *options, *without)
        finally:
            cursor.execute("COMMIT")
    return copied


def _restore_postgresql(source: Path) -> None:
    """Run one script in one transaction: it drops the tables, restores the archive's, and settles what is in them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        schema = cursor.fetchone()[0]
        tables = connection.introspection.table_names(cursor)
    _check_tables(tables, source)
    connection.close()
    script = source.with_suffix(".sql")
    _tool("pg_restore", "--no-owner", "--no-privileges", "--no-comments", f"--file={script}", str(source))
    quoted = ", ".join(f'"{schema}"."{table}"' for table in tables)
    functions = [*guard.POSTGRES_FUNCTIONS, changes.FUNCTION]
    first = source.with_name("first.sql")
    first.write_text(
        (f"DROP TABLE {quoted} CASCADE;\n" if tables else "")
        + "".join(f'DROP FUNCTION IF EXISTS "{schema}".{function};\n' for function in functions)
    )
    last = source.with_name("last.sql")
    settled = (statement.format(schema=f'"{schema}".', until=HELD_UNTIL) for statement in SETTLE)
    last.write_text("".join(f"{statement};\n" for statement in settled))
    files = [f"--file={part}" for part in (first, script, last)]
    _run("psql", "-X", "-q", "--single-transaction", "--set=ON_ERROR_STOP=1", "--output=/dev/null", *files)


def _check_tables(tables: list[str], source: Path) -> None:
    """Raise BackupFailed if a table belongs neither to this program nor to the archive: it would be lost."""
    archived = re.findall(
        r"^\d+; \d+ \d+ TABLE \S+ (.+) \S+$", _tool("pg_restore", "--list", str(source)), re.MULTILINE
    )
    known = {*connection.introspection.django_table_names(), MIGRATIONS, *archived}
    if others := sorted(set(tables) - known):
        raise BackupFailed(
            f"Nothing was changed: the database has {len(others)} tables that are not this site's, such as"
            f" {others[0]}, and a restore would delete them. Give this site a database of its own with DATABASE_URL;"
            " or, if they belong to a plugin that you no longer use, drop them first."
        )


def _run(program: str, *options: str) -> None:
    """Run one of PostgreSQL's client programs on this site's database."""
    (_, *where), more = connection.client.settings_to_cmd_args_env(connection.settings_dict, [])
    _tool(program, *options, *where, environment=more)


def _tool(program: str, *options: str, environment: dict[str, str] | None = None) -> str:
    """Run a program and return its output. Raises BackupFailed if it is missing or fails."""
    if shutil.which(program) is None:
        raise BackupFailed(
            f"{program} is not installed. Install PostgreSQL's client programs, of the server's version or newer."
        )
    variables = {**os.environ, **(environment or {})}
    done = subprocess.run([program, *options], env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        why = done.stderr.strip().splitlines() or [f"it exited with {done.returncode}"]
        raise BackupFailed(f"{program} failed: {why[0]}")
    return done.stdout
