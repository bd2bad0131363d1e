"""Outages of what workers depend on: connections, the queue, clocks, their event loop, other sessions."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection, connections
from django_q.models import OrmQ

from conversations.models import Prompt
from conversations.verification.stored import verify
from tests.crash.acting import MARKS, Start, asks, began, both, draining, ended, killed_at, payloads, postgres
from tests.crash.databases import server
from tests.crash.processes import wait_for
from tests.crash.site import Site

pytestmark = MARKS
TURNS = 50


def all_end(site: Site, prompts: list[Prompt]) -> None:
    def look() -> bool:
        for prompt in prompts:
            for output in site.pending(prompt):
                site.decide(output, "it_did_not" if output.ask == "interrupted" else "approve")
        return not Prompt.objects.filter(ended_at=None).exists()

    wait_for(look, f"the end of {len(prompts)} turns", site, patience_seconds=300)
    for prompt in prompts:
        prompt.refresh_from_db()
        assert (prompt.state, prompt.stop_reason) == ("completed", "text")
        assert verify(prompt.conversation_id).problems == []


@postgres
def test_fifty_turns_end_while_connections_are_cut(
    site: Site, start: Start, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """CP35: every 2.5 s all connections of the workers are ended, in the middle of anything (I1-I5)."""
    settings.AGENTSITE_PROMPTS_AT_ONCE = TURNS
    monkeypatch.setenv("PGAPPNAME", "this test")
    connection.close()
    start(PGAPPNAME="a worker")
    name, over, cuts = connection.settings_dict["NAME"], threading.Event(), list[int]()
    sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"

    def cut() -> None:
        with psycopg.connect(server(), autocommit=True) as monkey:
            while not over.wait(2.5):
                row = monkey.execute(f"{sql} WHERE datname = %s AND application_name = 'a worker'", [name]).fetchone()
                cuts.append(row[0] if row else 0)

    thread = threading.Thread(target=cut)
    thread.start()
    try:
        prompts = [site.say("do" if number % 2 else "count") for number in range(TURNS)]
        all_end(site, prompts)
    finally:
        over.set()
        thread.join()
    assert sum(cuts) > 2
    done = sum(payloads(prompt, "action_result")[0].get("code") is None for prompt in prompts)
    assert done <= site.effects()["1/0"] <= TURNS


@both
def test_turns_end_while_the_queue_forgets_everything(site: Site, start: Start) -> None:
    """CP36, T-10: it is emptied again and again; wake-ups are lost, no turn is."""
    start()
    prompt = site.say("ask")
    asks(site, prompt)
    over = threading.Event()

    def forget() -> None:
        while not over.wait(0.2):
            OrmQ.objects.all().delete()
        connection.close()

    thread = threading.Thread(target=forget)
    thread.start()
    try:
        all_end(site, [prompt, *(site.say("do") for _ in range(9))])
    finally:
        over.set()
        thread.join()
    assert site.effects() == {"1/0": 10, "2/0": 1}


@postgres
def test_who_hangs_in_a_transaction_is_ended_before_a_lease_lapses(site: Site, start: Start) -> None:
    """With the times that a site has when nobody sets them: a worker waits for that session to renew its leases."""
    start(AGENTSITE_LEASE_SECONDS="30", AGENTSITE_RENEW_SECONDS="5", AGENTSITE_SWEEP_SECONDS="10")
    prompt = site.say("take for ever")
    began(site)
    hangs = connections.create_connection("default")
    with hangs.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("SELECT lease_until FROM conversations_prompt WHERE id = %s FOR UPDATE", [prompt.pk])
        lapses_at: float = cursor.fetchone()[0]

    def renewed() -> bool:
        prompt.refresh_from_db()
        return prompt.lease_until > lapses_at

    wait_for(renewed, "the lease's renewal", site)
    assert prompt.fence == 1
    hangs.close()


@both
def test_workers_whose_clocks_are_hours_apart_claim_once(site: Site, tmp_path: Path) -> None:
    """CP37: one is an hour ahead, one an hour behind, one as the database: leases are the database's time."""
    code = "import os, time\nreal, ahead = time.time, float(os.environ['AHEAD'])\ntime.time = lambda: real() + ahead\n"
    (tmp_path / "sitecustomize.py").write_text(code)
    prompt, go = site.say("take long"), site.folder / "go"
    drains = [
        draining(site, go, AGENTSITE_HOST=f"{site.name}_{n}", PYTHONPATH=str(tmp_path), AHEAD=str(hours * 3600))
        for n, hours in enumerate((-1, 0, 1))
    ]
    wait_for(lambda: len(list(site.folder.glob("go.*"))) == 3, "three drains", site)
    go.touch()
    assert [drain.wait() for drain in drains] == [0] * 3
    assert (ended(site, prompt).state, prompt.fence) == ("completed", 1)
    assert site.effects() == {"1/0 began": 1, "1/0 ended": 1}


def test_a_worker_may_die_while_it_renews(site: Site, start: Start) -> None:
    """CP29: in the thread that keeps the leases."""
    prompt = site.say("take long")
    assert draining(site, **killed_at(site, "before_renew", 4)).wait() == -signal.SIGKILL
    start()
    assert ended(site, prompt).state == "completed"
    assert (prompt.fence > 1, site.effects()["1/0 began"]) == (True, 1)


def test_a_loop_that_hangs_loses_its_turns(site: Site) -> None:
    """CP29: its thread lives and would renew for ever. Another takes over; the first one's result is refused."""
    prompt = site.say("hang")
    hung = draining(site)
    began(site)

    def lapsed() -> bool:
        prompt.refresh_from_db()
        return bool(hung.poll() is None and "has not ticked" in site.said())

    wait_for(lapsed, "the end of its leases", site)
    other = draining(site, AGENTSITE_HOST=f"{site.name}_other")
    gate = asks(site, prompt)
    assert gate.ask == "interrupted"
    assert hung.wait() == 0  # what it came to was refused: the card still waits
    assert [output.pk for output in site.pending(prompt)] == [gate.pk]
    assert other.wait() == 0
    site.decide(gate, "it_did_not")
    last = draining(site)
    assert ended(site, prompt).state == "completed"
    assert last.wait() == 0
    assert site.effects() == {"1/0 began": 1}
    assert payloads(prompt, "action_result")[0]["code"] == "it_did_not"
