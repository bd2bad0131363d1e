"""Hints are sent after the commits they are about, together, and on a connection of their own (PostgreSQL)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from conversations.approvals.decisions import decide
from conversations.database import hints
from conversations.database.hints import EVERYTHING, PAYLOAD_MOST, WAITING_MOST, Sender, payload_of
from conversations.prompts.killswitch import turn_off, turn_on
from conversations.prompts.listing import archive, mark_seen, rename
from conversations.prompts.start import start_conversation, start_prompt
from conversations.worker.drafts import DraftRow, store
from tests.conversations.recorded import at_once, meddle, taken
from tests.conversations.support import asking

ROOT = Path(__file__).parents[3]
SOON = 5.0
MOMENT = 0.2
NOTHING = {"input_tokens": 0, "output_tokens": 0}


def test_only_one_module_notifies() -> None:
    files = [file for folder in ("agents", "agentsite", "conversations") for file in (ROOT / folder).rglob("*.py")]
    assert [file.name for file in files if "pg_notify" in file.read_text()] == ["hints.py"]


@pytest.mark.django_db(transaction=True)
def test_nothing_notifies_where_something_is_recorded(ann: User) -> None:
    """Neither a record, nor a draft, a decision, a change of the list or the kill switch."""
    _, output = asking(ann)
    with CaptureQueriesContext(connection) as queries:
        prompt = start_prompt(start_conversation(ann), ann, "Go.")
        held = taken(prompt)
        store([DraftRow(held.prompt, "1", 1, held.fence, "Half of it", 10)])
        decide(output.pk, ann, "approve", digest=output.digest, via="page")
        for change in (partial(rename, prompt.conversation, "Other"), partial(archive, prompt.conversation)):
            change()
        mark_seen(prompt.conversation_id, 1)
        turn_on(None, "A leak.")
        turn_off(None)
    statements = [each["sql"].lower() for each in queries.captured_queries]
    assert any("update conversations_conversation set seq" in sql for sql in statements)
    assert any("insert into conversations_draft" in sql for sql in statements)
    assert not [sql for sql in statements if "notify" in sql]


def test_a_payload_that_would_be_too_long_says_look_at_all() -> None:
    """PostgreSQL refuses 8,000 bytes."""
    fits = ["7" * (PAYLOAD_MOST - 2), "1"]
    assert payload_of(fits) == ",".join(fits)
    assert payload_of([*fits, "1"]) == EVERYTHING
    assert payload_of(["1", EVERYTHING]) == EVERYTHING


# On a server


class Ear:
    """A connection that listens."""

    def __init__(self, to: psycopg.Connection[Any]) -> None:
        self._to = to

    def hears(self, seconds: float = SOON, most: int | None = 1) -> list[str]:
        """Return the payloads of that time, at the latest when there are so many."""
        return [each.payload for each in self._to.notifies(timeout=seconds, stop_after=most)]


@pytest.fixture
def ear(transactional_db: None) -> Iterator[Ear]:
    hints.flush()  # what the fixtures changed
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as listens:
        listens.execute("LISTEN agentsite")
        yield Ear(listens)


@pytest.mark.postgres
def test_the_first_is_sent_at_once_and_the_others_together(ann: User, ear: Ear) -> None:
    """A hundred commits of ten writers make a few notifications, which name every conversation."""
    prompts = [start_prompt(start_conversation(ann), ann, "Go.") for _ in range(10)]
    ear.hears(MOMENT, None)
    began = time.monotonic()
    writers = [partial(_changes, prompt.conversation_id, 10) for prompt in prompts]
    assert at_once(*writers) == [None] * 10
    took = time.monotonic() - began
    heard = ear.hears(MOMENT, None)
    assert {pk for payload in heard for pk in payload.split(",")} == {str(each.conversation_id) for each in prompts}
    assert len(heard) <= 2 + took / hints.PAUSE_SECONDS


def _changes(conversation: int, times: int) -> None:
    for _ in range(times):
        hints.hint_changed(conversation)


@pytest.mark.postgres
def test_what_is_rolled_back_hints_nothing(ear: Ear) -> None:
    with transaction.atomic():
        hints.hint_changed(7)
        assert ear.hears(MOMENT) == []
        transaction.set_rollback(True)
    with transaction.atomic():
        hints.hint_changed(8)
    assert ear.hears() == ["8"]


@pytest.mark.postgres
def test_a_connection_that_was_cut_is_opened_again(
    ear: Ear, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No writer notices, and what could not be sent is sent then."""
    monkeypatch.setattr(hints, "AGAIN_SECONDS", 0.1)
    hints.hint_changed(1)
    assert ear.hears() == ["1"]
    meddle(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND position('pg_notify(' in query) > 0 AND pid <> pg_backend_pid()"
    )
    hints.hint_changed(2)
    assert ear.hears() == ["2"]
    assert "hints cannot be sent" in caplog.text


@pytest.mark.postgres
def test_hints_that_cannot_be_sent_do_not_pile_up(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> None:
    """The database is away: more than so many become one that says to look at all."""
    monkeypatch.setitem(connection.settings_dict, "HOST", "/no/such/folder")
    sender = Sender()
    for number in range(WAITING_MOST * 2):
        sender.add(str(number))
    assert len(sender._waiting) <= WAITING_MOST
    sender.stop(SOON)
    assert sender._thread is None


CHILD = """
import os, sys
import django
django.setup()
from django.db import connection
from conversations.database.hints import hint_changed
connection.settings_dict["NAME"] = sys.argv[1]
hint_changed(1)
{middle}
hint_changed(2)
"""
FORKS = """
from conversations.database import hints
hints.flush()
hint_changed(3)
if not os.fork():
    hint_changed(4)
    hints.flush()
    os._exit(0)
os.wait()
"""


@pytest.mark.postgres
@pytest.mark.parametrize("middle", ["", FORKS])
def test_a_process_sends_its_last_hints_before_it_ends(ear: Ear, middle: str) -> None:
    """And so does a child that was forked while its parent had a connection."""
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "agentsite.settings"}
    command = [sys.executable, "-c", CHILD.format(middle=middle), str(connection.settings_dict["NAME"])]
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    heard = {pk for payload in ear.hears(MOMENT, None) for pk in payload.split(",")}
    assert heard == ({"1", "2", "3", "4"} if middle else {"1", "2"})


@pytest.mark.postgres
def test_a_pooler_is_gone_round(ear: Ear, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`DATABASE_DIRECT_URL` is used to send, although the default connection could not."""
    settings.DATABASE_DIRECT = {name: connection.settings_dict[name] for name in ("HOST", "PORT", "USER")}
    hints.flush()
    connection.ensure_connection()
    monkeypatch.setitem(connection.settings_dict, "HOST", "/no/such/pooler")
    hints.hint_everything()
    assert ear.hears() == [EVERYTHING]
