"""Plans that PostgreSQL keeps: of what each turn sends again, and only where its sessions are the site's own."""

import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import NotSupportedError, connection, connections, transaction
from django.db.backends.signals import connection_created

from conversations.database.plans import USES, close_if_outdated, keep_plans, repeated_cursor
from conversations.ledger.journal import append
from conversations.models import Prompt
from conversations.prompts.start import start_conversation, start_prompt
from conversations.verification.stored import verify
from tests.agentsite.processes import free_port, wait_for
from tests.conversations.recorded import at_once, meddle, place, record, said

pytestmark = [pytest.mark.postgres, pytest.mark.django_db(transaction=True)]

OFTEN = USES + 3


@pytest.fixture(autouse=True)
def kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process keeps plans, as a drain does, until the end of the test."""
    monkeypatch.setattr(connection_created, "receivers", [*connection_created.receivers])
    keep_plans()


def counted(new_cursor: Callable[[], Any]) -> list[int]:
    """Have a statement run with one number after the other."""
    found = []
    for number in range(OFTEN):
        with new_cursor() as cursor:
            cursor.execute("SELECT %s + 1 AS counted", [number])
            found.append(cursor.fetchone()[0])
    return found


def planned() -> list[str]:
    """The statements that this session has a plan of."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        return [statement for (statement,) in cursor.fetchall()]


def test_a_statement_that_is_sent_again_is_planned_once() -> None:
    assert at_once(lambda: (counted(repeated_cursor), planned())) == [
        ([*range(1, OFTEN + 1)], ["SELECT $1 + 1 AS counted"])
    ]


def test_what_django_sends_is_not() -> None:
    """Its values stand in the statement, so each would have a plan of its own."""
    assert at_once(lambda: (counted(connection.cursor), planned())) == [([*range(1, OFTEN + 1)], [])]


@pytest.fixture
def told() -> Iterator[None]:
    """A table, of which a column may change."""
    meddle("CREATE TABLE told (text varchar(10))")
    yield
    meddle("DROP TABLE told")


@pytest.mark.usefixtures("told")
def test_a_plan_is_given_up_once_its_table_has_changed() -> None:
    def read() -> list[Any]:
        with repeated_cursor() as cursor:
            return list(cursor.execute("SELECT text FROM told").fetchall())

    def reading() -> list[Any]:
        before = [read() for _ in range(OFTEN)]
        with closing(connections.create_connection("default")) as migrating, migrating.cursor() as cursor:
            cursor.execute("ALTER TABLE told ALTER text TYPE varchar(300)")
        with pytest.raises(NotSupportedError, match="cached plan") as outdated:
            read()
        close_if_outdated(outdated.value)
        return [*before, read()]

    assert at_once(reading) == [[[]] * (OFTEN + 1)]


@pytest.fixture
def pooler(tmp_path: Path) -> Iterator[int]:
    """The port of a PgBouncer that passes two sessions on to others after each transaction."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program, "PgBouncer is missing: apt-get install pgbouncer"
    to, port = connection.settings_dict, free_port()
    server = {"host": to["HOST"], "port": to["PORT"] or 5432, "user": to["USER"], "password": to["PASSWORD"]}
    told = " ".join(f"{name}={value}" for name, value in server.items() if value)
    settings = tmp_path / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = {told}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n"
        "auth_type = any\npool_mode = transaction\ndefault_pool_size = 2\nignore_startup_parameters = options\n"
    )
    as_another = ["--user=nobody"] if os.geteuid() == 0 else []  # it refuses to run as root
    running = subprocess.Popen([program, "--quiet", *as_another, settings], stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: answers(port) or running.poll() is not None)
        assert running.poll() is None, running.stderr and running.stderr.read()
        yield port
    finally:
        running.terminate()
        running.communicate(timeout=30)


def answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_nothing_is_kept_behind_a_pooler(ann: User, pooler: int) -> None:
    """A session comes to another server session with each transaction: a plan in one is unknown in the other."""
    prompts = [start_prompt(start_conversation(ann), ann, "Go.") for _ in range(3)]

    def recording(prompt: Prompt) -> int:
        connection.close()
        connection.settings_dict = {**connection.settings_dict, "HOST": "127.0.0.1", "PORT": pooler}
        at = place(prompt)
        for number in range(30):
            with transaction.atomic():
                at = append(at, record(prompt, at, said(f"{number}")))
        return at.seq

    assert at_once(*[lambda prompt=prompt: recording(prompt) for prompt in prompts]) == [31] * 3
    assert [verify(prompt.conversation_id).problems for prompt in prompts] == [[]] * 3
