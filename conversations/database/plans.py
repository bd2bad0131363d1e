"""Statements whose plans PostgreSQL keeps: for those of a record, planning takes longer than running."""

from __future__ import annotations

from django.db import Error, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from django.db.backends.utils import CursorWrapper

USES = 2
"""Uses of a statement on a connection, with values of the same types, after which it is prepared; PostgreSQL then keeps
its plan once that has proved as good as new ones. What is sent with many rows at once is prepared at its first use.
"""
OUTDATED = frozenset({"0A000", "26000"})
"""PostgreSQL's codes for a prepared statement whose table has changed since, or that is not known."""


def keep_plans() -> None:
    """Have the connections of this process, from now on, keep the plans of statements that `repeated_cursor` sends.

    Not those through a pooler, which may pass a statement to a session that has no plan of that name.
    """
    connection_created.connect(_keep_plans)


def _keep_plans(connection: BaseDatabaseWrapper, **_: object) -> None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            [session] = cursor.fetchone()
        if session == connection.connection.info.backend_pid:  # a pooler makes up a number for each of its clients
            connection.connection.prepare_threshold = USES


def close_if_outdated(error: Error) -> None:
    """Close the connection if it has prepared statements that can be used no more: a table was changed meanwhile."""
    if getattr(error.__cause__, "sqlstate", None) in OUTDATED:
        connection.close()


def repeated_cursor() -> CursorWrapper:
    """Return a cursor for hand-written statements that each turn sends again, with other values.

    On PostgreSQL, it sends the values beside the statement. Django's writes them into it, and then each is another one.
    """
    if connection.vendor != "postgresql":
        return connection.cursor()
    from django.db.backends.postgresql.base import ServerBindingCursor  # SQLite needs no driver of PostgreSQL

    connection.ensure_connection()
    driver = connection.connection
    usual, driver.cursor_factory = driver.cursor_factory, ServerBindingCursor
    try:
        return connection.cursor()
    finally:
        driver.cursor_factory = usual
