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

# PostgreSQL and the network end no session by themselves whose other end hangs or is gone, and it may hold locks.
REACHED = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}
# One that hangs in a transaction is ended before those who wait for it give up, and before the leases of a worker that
# waits lapse (30 s).
WAITED_FOR = "-c idle_in_transaction_session_timeout=20s -c lock_timeout=25s"


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
    secure_delete: what is erased or redacted is overwritten in the file, also where Python's SQLite was not built to
    (measured: a record takes 1.04 times as long, an erasure twice; FAST leaves what had pages of its own).
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
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA recursive_triggers=ON;"
            " PRAGMA secure_delete=ON;",
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
        "OPTIONS": _options(dict(parse_qsl(parts.query, keep_blank_values=True))),
        # A cursor of the server's does not survive a pooler that hands the connection on after each transaction.
        "DISABLE_SERVER_SIDE_CURSORS": True,
    }


def _options(own: dict[str, str]) -> dict[str, Any]:
    """Those of the address win. What it has of `options` goes behind ours; a blank one leaves none."""
    if own.get("options"):
        own["options"] = f"{WAITED_FOR} {own['options']}"
    return REACHED | {"options": WAITED_FOR} | own
