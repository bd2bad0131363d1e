"""How many bytes a database holds: tables and indexes, without what is free."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import psycopg

_TABLES = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class WHERE relkind = 'r' AND oid >= 16384"
"""Of everybody but PostgreSQL itself, with indexes and long values."""


def stored_bytes(database: str) -> int:
    """Return the bytes in use in a SQLite file, or at a PostgreSQL address."""
    if database.startswith("postgres"):
        with psycopg.connect(database, autocommit=True) as connection:
            row = connection.execute(_TABLES).fetchone()
            return int(row[0]) if row else 0
    with closing(sqlite3.connect(database)) as file:
        pages, free, size = (
            int(file.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "freelist_count", "page_size")
        )
    return (pages - free) * size
