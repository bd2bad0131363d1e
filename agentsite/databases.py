"""The database from `DATABASE_URL`, and the options each kind runs with."""

import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from agentsite.env import ROOT
from agentsite.errors import CannotStart

# Django 5.2 asks for 3.31 (its release notes); the record's SQL uses RETURNING, which came with 3.35.
OLDEST_SQLITE = (3, 35, 0)

Database = dict[str, Any]


def from_url(url: str, folder: Path) -> Database:
    """Django's settings of one database: `postgres://user:password@host:port/name?option=value`, `sqlite:////path`,
    or, where `url` is blank, SQLite in `folder`. Raises CannotStart for anything else."""
    if not url:
        return sqlite(folder / "agentsite.sqlite3")
    try:
        parts = urlsplit(url)
        if parts.scheme in {"postgres", "postgresql"} and parts.path.strip("/"):
            return _postgresql(parts)
        if parts.scheme == "sqlite" and not parts.netloc and parts.path.strip("/"):
            return sqlite(ROOT / unquote(parts.path[1:]))
    except ValueError:  # a port that is no number, a bracket that does not close
        pass
    # The address is not repeated: it carries a password.
    raise CannotStart(
        "DATABASE_URL is no database: write postgres://user:password@host:5432/name or sqlite:////path/to/file."
    )


def sqlite(file: Path, version: tuple[int, ...] = sqlite3.sqlite_version_info) -> Database:
    """SQLite as one host needs it. Raises CannotStart where Python's SQLite is older than OLDEST_SQLITE.

    IMMEDIATE takes the write lock at BEGIN: a deferred transaction that reads and then writes fails at once where
    another one wrote between (measured with five writers: 5,069 refused in 15 s, none with IMMEDIATE). Lock waits are
    unfair and came to 10.6 s, so 20 s. FULL: what is recorded survives a loss of power, not only of the process.
    recursive_triggers: without it a REPLACE deletes the rows in its way without asking the ledger's triggers.
    """
    if version < OLDEST_SQLITE:
        needed, found = (".".join(map(str, each)) for each in (OLDEST_SQLITE, version))
        raise CannotStart(
            f"SQLite is {found} and {needed} is needed: use a newer Python, or PostgreSQL by DATABASE_URL."
        )
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": file,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA recursive_triggers=ON;",
        },
        # A file, as in production: an in-memory database knows neither WAL nor a second process.
        "TEST": {"NAME": file.with_name(f"test-{file.name}")},
    }


def _postgresql(parts: SplitResult) -> Database:
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.strip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(parts.port or ""),
        "OPTIONS": dict(parse_qsl(parts.query)),
        # A cursor of the server's does not survive a pooler that hands the connection on after each transaction.
        "DISABLE_SERVER_SIDE_CURSORS": True,
    }
