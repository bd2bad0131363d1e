"""The admin's first page: what waits, what failed, how the workers stand, what was decided, as far as it is theirs."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from conversations.approvals.decisions import decide
from conversations.database.sql import database_time
from conversations.models import Drain, Prompt, Worker
from tests.conversations.live_page import Element, parsed
from tests.conversations.support import Story, asking, person

pytestmark = pytest.mark.django_db

START = "/admin/"
QUERIES_MOST = 26
"""However much there is to show. Nine of them are the session, the person, and the sidebar."""


@pytest.fixture
def owner() -> User:
    return person("anna", first_name="Anna")


@pytest.fixture
def chief(client: Client) -> User:
    user = person("chief", is_superuser=True, is_staff=True)
    client.force_login(user)
    return user


def section(client: Client, name: str) -> str:
    """What a section of the page says."""
    return _section(client.get(START).text, name).text()


def _section(html: str, name: str) -> Element:
    begin = html.index(f'<section aria-labelledby="{name}">')
    return parsed(html[begin : html.index("</section>", begin) + len("</section>")])


def fails(owner: User, because: str = "The model server cannot be reached.") -> Prompt:
    return Story(owner, "Import the customers.").ends("failed", "model_error", because)


def works(host: str, seconds_ago: float = 1, drains: int = 1, **more: Any) -> None:
    """A host whose worker beat so long ago, and that has so many of its two drains."""
    Worker.objects.create(host=host, beat_at=database_time() - seconds_ago, drains=2, **more)
    for number in range(drains):
        Drain.objects.create(host=host, number=number, token=f"{host}/{number}", until=database_time() + 60)


def test_what_waits_stands_there_the_longest_wait_first(client: Client, chief: User, owner: User) -> None:
    assert "No approvals are waiting." in section(client, "waits")
    _, first = asking(owner, "echo first")
    asking(chief, "echo second")
    said = section(client, "waits")
    assert said.startswith("Waiting for a decision 2 ")
    assert said.index("echo first") < said.index("echo second")
    for words in ("Run a command High risk", "for Anna · expires on 1 Jan 2099", "for you"):
        assert words in said
    assert f'href="/admin/conversations/approval/{first.pk}/change/"' in client.get(START).text


def test_staff_is_shown_what_is_theirs(client: Client, owner: User) -> None:
    """Approvals, failures and decisions of others are for who may see them in the admin's lists."""
    _, theirs = asking(owner, "echo theirs")
    decide(theirs.pk, owner, "reject", digest=theirs.digest, via="page")
    asking(owner, "echo waits")
    fails(owner, "It broke.")
    staff = person("staff", is_staff=True)
    client.force_login(staff)
    html = client.get(START).text
    for words in ("echo theirs", "echo waits", "It broke.", "Import the customers"):
        assert words not in html
    mine = fails(staff, "Mine broke.")
    asking(staff, "echo mine")
    html = client.get(START).text
    assert "echo mine" in html
    assert "Mine broke." in html
    assert f'href="/c/{mine.conversation_id}/#t-{mine.pk}"' in html
    client.force_login(person("kim", "decide_approval", is_staff=True))
    html = client.get(START).text
    assert "echo waits" in html
    assert "echo theirs" in html
    assert "It broke." not in html


def test_what_failed_within_a_day_says_why_and_leads_to_its_record(client: Client, chief: User, owner: User) -> None:
    assert "No failed turns." in section(client, "failed")
    old, unsaid, said = (
        fails(owner, "Long ago."),
        fails(owner, ""),
        fails(owner, "The \u202ekey\u202c is wrong.\nMore."),
    )
    Prompt.objects.filter(pk=old.pk).update(ended_at=timezone.now() - timedelta(hours=25))
    html = client.get(START).text
    found = _section(html, "failed").text()
    assert "Long ago." not in found
    assert found.index("is wrong.") < found.index("It ended before it was finished.")
    assert "\u202e" not in html
    for prompt in (unsaid, said):
        assert f'href="/admin/conversations/prompt/{prompt.pk}/change/"' in html


def test_a_host_whose_drains_are_missing_runs_no_turns(client: Client, chief: User) -> None:
    """It may beat all the same. One that lacks some of them does run turns, and the table says how many there are."""
    works("a", drains=0)
    assert "No worker is running." in section(client, "work")
    assert (client.get("/healthz").status_code, client.get("/healthz").json()["drains"]) == (503, 0)
    works("b")
    said = section(client, "work")
    assert "A host is not responding." in said
    assert "1 of 2" in said
    health = client.get("/healthz")
    assert (health.status_code, health.json()["drains"], health.json()["drains_wanted"]) == (200, 1, 4)


@pytest.mark.parametrize(
    ("beats", "words"),
    [
        ({}, "No worker is running."),
        ({"a": 1}, "Healthy."),
        ({"a": 999}, "No worker is running."),
        ({"a": 1, "b": 999}, "A host is not responding."),
    ],
)
def test_the_workers_are_as_well_as_their_beats(
    client: Client, chief: User, beats: dict[str, float], words: str
) -> None:
    for host, age in beats.items():
        works(host, age)
    assert words in section(client, "work")
    assert client.get("/healthz").json()["workers"] == sum(age == 1 for age in beats.values())


def test_the_queue_and_what_runs_are_counted(
    client: Client, chief: User, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    works("a<b")
    assert "No turns are queued." in section(client, "work")
    held = Story(owner).prompt
    Story(owner)
    Prompt.objects.filter(pk=held.pk).update(worker="worker:a<b/17", lease_until=database_time() + 60)
    said = section(client, "work")
    assert "Healthy." in said
    assert re.search(r"a<b \d\.\d s ago 1 ", said)
    assert "1 turn is queued, the oldest was queued just now" in said
    monkeypatch.setattr("conversations.admin.start.LATE_SECONDS", 0)
    assert "Turns wait longer than they should." in section(client, "work")


def test_decisions_of_people_stand_there_the_newest_first(client: Client, chief: User, owner: User) -> None:
    assert "No decisions yet." in section(client, "decided")
    for command, decision in (("echo yes", "approve"), ("echo no", "reject")):
        _, output = asking(owner, command)
        decide(output.pk, chief, decision, digest=output.digest, via="admin")
    said = section(client, "decided")
    assert said.index("echo no") < said.index("echo yes")
    assert "Rejected by you" in said


def test_the_page_asks_the_database_as_often_however_much_there_is(client: Client, chief: User, owner: User) -> None:
    works("a")
    counts = []
    for _ in range(2):
        for number in range(4):
            fails(owner)
            asking(owner, f"echo {number}")
            _, output = asking(owner, f"echo {number} decided")
            decide(output.pk, owner, "reject", digest=output.digest, via="page")
        with CaptureQueriesContext(
            connection,
        ) as queries:
            client.get(START)
        counts.append(len(queries))
    assert counts[0] == counts[1] <= QUERIES_MOST
