"""Every statement that this process sends to its database: what it says, who sends it, and how long it takes."""

from __future__ import annotations

import re
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from bench import support

_LIST = re.compile(r"%s(, ?%s)+|\((\(\.\.\.\)|%s)(, ?(\(\.\.\.\)|%s))+\)")
_COLUMNS = re.compile(r'SELECT (?:DISTINCT )?("[^ ]+"(?: AS "[^ ]+")?, ?)+[^ ]+(?: AS "[^ ]+")? FROM')
_PROJECT = str(support.ROOT)
_INSTALLED = "site-packages"
_PASS_ON = {"_with_connection", "_after_wait", "brief_waits"}
"""Functions that only run another one in the database's thread."""


class Sent(NamedTuple):
    """One kind of statement: its text without the values, who sends it and for whom, and whether the ORM wrote it."""

    sql: str
    caller: str
    orm: bool


@dataclass
class Cost:
    """How often it was sent, and the seconds until the database had done it."""

    count: int = 0
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        """Add one."""
        self.count += 1
        self.seconds += seconds


Statements = dict[Sent, Cost]
COMMIT = "COMMIT"


@contextmanager
def recorded(thread: str) -> Iterator[Statements]:
    """All statements of threads whose name begins so, on connections that are opened in the block."""
    from django.db.backends.signals import connection_created

    found: Statements = defaultdict(Cost)

    def listen(connection: Any, **_: object) -> None:
        if threading.current_thread().name.startswith(thread):
            connection.execute_wrappers.append(_noting(found))
            connection._commit = _noting_commit(found, connection._commit)

    connection_created.connect(listen)
    try:
        yield found
    finally:
        connection_created.disconnect(listen)


def _noting(found: Statements) -> Callable[..., Any]:
    def note(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            seconds = time.perf_counter() - began
            found[Sent(_told(sql), *_sender())].add(seconds)

    return note


def _noting_commit(found: Statements, commit: Callable[[], None]) -> Callable[[], None]:
    def note() -> None:
        began = time.perf_counter()
        commit()
        seconds = time.perf_counter() - began
        caller, _ = _sender()
        found[Sent(COMMIT, caller, orm=False)].add(seconds)

    return note


def _told(sql: str) -> str:
    """Return a statement without its lists of columns and values."""
    said = _LIST.sub("...", " ".join(sql.split()))
    return _COLUMNS.sub("SELECT ... FROM", said).replace('"', "")


def _sender() -> tuple[str, bool]:
    """Return who sends a statement, with the outermost function of the site, and whether the ORM wrote it."""
    frame: FrameType | None = sys._getframe(2)
    inner, outer, orm = "", "", False
    while frame:
        code = frame.f_code
        if _INSTALLED in code.co_filename:
            orm = orm or (not inner and "/db/models/" in code.co_filename)
        elif code.co_filename.startswith(_PROJECT) and code.co_name not in _PASS_ON:
            outer = f"{Path(code.co_filename).stem}.{code.co_name}"
            inner = inner or outer
        frame = frame.f_back
    return (inner if inner == outer else f"{inner} < {outer}"), orm


def is_transaction(sent: Sent) -> bool:
    """Whether it begins or ends a transaction, or a part of one."""
    return sent.sql.startswith((COMMIT, "BEGIN", "SAVEPOINT", "RELEASE SAVEPOINT"))


def totals(found: Statements, turns: int) -> str:
    """Return the statements, transactions and milliseconds of one turn."""
    orm = sum(cost.count for sent, cost in found.items() if sent.orm)
    own = sum(cost.count for sent, cost in found.items() if not sent.orm and not is_transaction(sent))
    commits = sum(cost.count for sent, cost in found.items() if sent.sql == COMMIT)
    seconds = sum(cost.seconds for cost in found.values())
    return (
        f"{(orm + own) / turns:.1f} statements a turn ({orm / turns:.1f} of the ORM), {commits / turns:.1f} commits, "
        f"{seconds * 1000 / turns:.1f} ms in the database"
    )


def listing(found: Statements, turns: int, most: int) -> str:
    """Return the statements that take most, each by its count and milliseconds in a turn."""
    by_time = sorted(found.items(), key=lambda each: -each[1].seconds)[:most]
    rows = [
        f"{cost.count / turns:8.1f} {cost.seconds * 1000 / turns:8.2f}  {'orm' if sent.orm else 'own'}  "
        f"{sent.caller:<52.52}  {sent.sql[:110]}"
        for sent, cost in by_time
    ]
    return "\n".join(["  a turn  ms/turn  by   sent by < for", *rows])
