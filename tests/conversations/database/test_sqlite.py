"""SQLite's settings as they really apply: settings that are written but never applied are a classic (T-36, CP40)."""

import sqlite3
import threading
from contextlib import closing, nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError, connection, transaction

from agentsite import databases
from conversations.database.sqlite3 import base
from conversations.ledger.journal import append
from conversations.models import Step as Row
from conversations.prompts.start import start_conversation, start_prompt
from conversations.verification.stored import verify
from tests.conversations.recorded import at_once, place, record, said

WRITERS, TRANSACTIONS = 4, 100


@pytest.mark.skipif(connection.vendor != "sqlite", reason="settings of SQLite's")
@pytest.mark.django_db(transaction=True)
def test_its_settings_hold_on_every_connection() -> None:
    def settings() -> dict[str, object]:
        with connection.cursor() as cursor:
            return {name: cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in expected}

    expected: dict[str, object] = {"journal_mode": "wal", "synchronous": 2, "recursive_triggers": 1, "secure_delete": 1}
    in_a_thread = at_once(settings)
    assert [settings(), *in_a_thread] == [expected, expected]
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA busy_timeout").fetchone()[0] >= 20_000
        assert cursor.execute("PRAGMA foreign_keys").fetchone()[0] == 1


def test_what_is_deleted_is_overwritten_whatever_sqlite_was_built_with(tmp_path: Path) -> None:
    """Short texts, and those that have pages of their own."""
    options = databases.sqlite(tmp_path / "site")["OPTIONS"]
    with closing(sqlite3.connect(tmp_path / "site", isolation_level=None)) as opened:
        opened.execute("PRAGMA secure_delete=OFF")  # as many are built
        opened.executescript(f"{options['init_command']} CREATE TABLE said (text TEXT)")
        opened.executemany("INSERT INTO said VALUES (?)", [["hunter2"], ["hunter2 " * 10_000], ["Hello."]])
        opened.execute("DELETE FROM said WHERE text LIKE 'hunter2%'")
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    held = (tmp_path / "site").read_bytes()
    assert (b"Hello." in held, b"hunter2" in held) == (True, False)


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a lock of SQLite's")
@pytest.mark.django_db(transaction=True)
def test_a_transaction_has_the_write_lock_from_its_beginning(ann: User) -> None:
    """IMMEDIATE: a second one that only reads first waits, and is not refused later when it writes."""
    inside, began, order = threading.Event(), threading.Event(), []

    def first() -> None:
        with transaction.atomic():
            inside.set()
            began.wait(timeout=30)
            order.append("first")

    def second() -> None:
        inside.wait(timeout=30)
        began.set()
        with transaction.atomic():
            order.append("second")

    assert at_once(first, second) == [None, None]
    assert order == ["first", "second"]


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses between attempts to get the lock, in seconds. The time of the test goes on by these only."""
    found: list[float] = []
    monkeypatch.setattr(base, "time", SimpleNamespace(sleep=found.append, monotonic=lambda: sum(found)))
    return found


@pytest.mark.skipif(connection.vendor != "sqlite", reason="a lock of SQLite's")
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("alone", [False, True], ids=["a transaction", "a statement"])
def test_who_writes_asks_for_the_lock_at_short_intervals_until_giving_up(
    ann: User, pauses: list[float], alone: bool
) -> None:
    def beside() -> int:
        within = nullcontext() if alone else transaction.atomic()
        with pytest.raises(OperationalError, match="database is locked"), within:
            User.objects.update(first_name="Ann")
        with connection.cursor() as cursor:  # anything else waits as ever
            return int(cursor.execute("PRAGMA busy_timeout").fetchone()[0])

    with transaction.atomic():
        assert at_once(beside) == [20_000]
    assert (pauses[0], max(pauses)) == (base.SHORTEST_PAUSE, base.LONGEST_PAUSE)
    assert 20 <= sum(pauses) < 20 + base.LONGEST_PAUSE


@pytest.mark.django_db(transaction=True)
def test_four_writers_at_once_fail_never(ann: User) -> None:
    """T-36: 100 records each, each to a conversation of its own, while others write to theirs."""
    prompts = [start_prompt(start_conversation(ann), ann, "Go.") for _ in range(WRITERS)]

    def writing(n: int) -> int:
        at = place(prompts[n])
        for number in range(TRANSACTIONS):
            with transaction.atomic():
                at = append(at, record(prompts[n], at, said(f"{number}")))
        return at.seq

    assert at_once(*[lambda n=n: writing(n) for n in range(WRITERS)]) == [TRANSACTIONS + 1] * WRITERS
    assert Row.objects.count() == WRITERS * (TRANSACTIONS + 1)
    assert [verify(prompt.conversation_id).problems for prompt in prompts] == [[]] * WRITERS
