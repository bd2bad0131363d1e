"""The database settings: `DATABASE_URL`, `DATABASE_DIRECT_URL`, and the options of each database."""

import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from agentsite.env import ROOT, cores
from agentsite.errors import CannotStart

# Django 5.2 requires 3.31 (its release notes); the record's SQL uses RETURNING, which was added in 3.35.
OLDEST_SQLITE = (3, 35, 0)

Database = dict[str, Any]

# Without these, PostgreSQL and the network keep a session whose other end hangs or is gone, and it may hold locks.
REACHED = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,  # milliseconds
}
# A session that hangs in a transaction is ended before those that wait for it give up, and before the leases of a
# waiting worker expire (30 s).
WAITED_FOR = "-c idle_in_transaction_session_timeout=20s -c lock_timeout=25s"


def from_url(url: str, folder: Path) -> Database:
    """Return Django's settings for one database: `postgres://user:password@host:port/name?option=value`,
    `sqlite:////path` or, if `url` is blank, SQLite in `folder`. Raises CannotStart for anything else."""
    if not url:
        return sqlite(folder / "agentsite.sqlite3")
    with suppress(ValueError):  # a bracket that is not closed
        parts = urlsplit(url)
        if parts.scheme == "sqlite" and not parts.netloc and parts.path.strip("/"):
            return sqlite(ROOT / unquote(parts.path[1:]))
    return _postgresql(
        url, "DATABASE_URL is not valid: write postgres://user:password@host:5432/name or sqlite:////path/to/file."
    )


def direct_from_url(url: str, database: Database) -> Database:
    """Return what differs from the settings of `database` in connections that go past its pooler; {} without a URL.

    Raises CannotStart for anything but an address of PostgreSQL, and where `database` is SQLite.
    """
    if not url:
        return {}
    if "HOST" not in database:
        raise CannotStart("DATABASE_DIRECT_URL is only for PostgreSQL behind a pooler: remove it, or set DATABASE_URL.")
    return _postgresql(url, "DATABASE_DIRECT_URL is not valid: write postgres://user:password@host:5432/name.")


def sqlite(file: Path, version: tuple[int, ...] = sqlite3.sqlite_version_info) -> Database:
    """Return the settings for SQLite on one host. Raises CannotStart if Python's SQLite is older than OLDEST_SQLITE.

    IMMEDIATE takes the write lock at BEGIN: a deferred transaction that reads and then writes fails at once if another
    one wrote in between (measured with five writers: 5,069 refused in 15 s, none with IMMEDIATE). Lock waits are unfair
    and reached 10.6 s, so the timeout is 20 s. FULL: records survive a power failure, not only a crash of the process.
    recursive_triggers: without it, a REPLACE deletes the rows in its way without firing the ledger's triggers.
    secure_delete: what is erased or redacted is overwritten in the file, even if Python's SQLite was built without it
    (measured: a record takes 1.04 times as long, an erasure twice; FAST leaves content that had its own pages).
    """
    if version < OLDEST_SQLITE:
        needed, found = (".".join(map(str, each)) for each in (OLDEST_SQLITE, version))
        raise CannotStart(
            f"SQLite is {found}, but {needed} or newer is needed: use a newer Python, or PostgreSQL with DATABASE_URL."
        )
    return {
        "ENGINE": "conversations.database.sqlite3",
        "NAME": file,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA recursive_triggers=ON;"
            " PRAGMA secure_delete=ON;",
        },
        # A file, as in production: an in-memory database has no WAL and cannot be shared with a second process.
        "TEST": {"NAME": file.with_name(f"test-{file.name}")},
    }


def _postgresql(url: str, problem: str) -> Database:
    """Return the settings for an address of PostgreSQL. Raises CannotStart with this problem for anything else.

    The URL is not repeated in the message: it contains a password.
    """
    try:
        parts = urlsplit(url)
        port = str(parts.port or "")
    except ValueError:  # a port that is not a number, a bracket that is not closed
        raise CannotStart(problem) from None
    if parts.scheme not in {"postgres", "postgresql"} or not parts.path.strip("/"):
        raise CannotStart(problem)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.strip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": port,
        "OPTIONS": _options(dict(parse_qsl(parts.query, keep_blank_values=True))),
        # A server-side cursor does not survive a pooler that passes the connection on after each transaction.
        "DISABLE_SERVER_SIDE_CURSORS": True,
    }


def _options(own: dict[str, str]) -> dict[str, Any]:
    """Return our options, overridden by those of the URL. Its `options` are added to ours; a blank one removes them."""
    if own.get("options"):
        own["options"] = f"{WAITED_FOR} {own['options']}"
    return REACHED | {"options": WAITED_FOR} | own


def default_drains(database: Database) -> int:
    """Return how many processes run turns on a host by default: one for each core; on SQLite, which has one writer at a
    time, two at most.
    """
    return min(cores(), 2) if database["ENGINE"].endswith("sqlite3") else cores()
