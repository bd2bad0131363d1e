"""A site whose SQLite database somebody else has locked."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

WAITS_A_SECOND = """
from agentsite import databases

sqlite = databases.sqlite

def hasty(*args):
    found = sqlite(*args)
    found["OPTIONS"]["timeout"] = 1
    return found

databases.sqlite = hasty
from agentsite import web
web.run()
"""
"""A program: the web server, which waits 1 s for a lock, not 20."""


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Nobody else can write."""
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
