"""Sending several statements to the database at once, where each would otherwise cost a round trip."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def pipelined() -> Iterator[None]:
    """Send the statements of the block without waiting for their results, which are there at its end.

    Each result is read from the cursor of its own statement, after the block. An error of one is raised at its end, and
    then the transaction must be rolled back. On SQLite, which is no trip away, statements run one by one.
    """
    if connection.vendor != "postgresql":
        yield
        return
    connection.ensure_connection()
    with connection.wrap_database_errors, connection.connection.pipeline():
        yield
