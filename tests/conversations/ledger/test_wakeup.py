"""Waking workers: each host has its own queue."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import OperationalError
from django_q.brokers import get_broker
from django_q.models import OrmQ
from django_q.signals import pre_enqueue

from conversations.database.sql import database_time
from conversations.ledger import wakeup
from conversations.models import Drain, Worker
from conversations.worker import hosts, tasks

pytestmark = pytest.mark.django_db


@pytest.fixture
def away() -> Iterator[None]:
    """A queue that takes nothing."""

    def refuses(**_more: object) -> None:
        raise OperationalError("the database is away")

    pre_enqueue.connect(refuses)
    yield
    pre_enqueue.disconnect(refuses)


def works(host: str, **more: object) -> None:
    now = database_time()
    Worker.objects.create(**{"host": host, "pid": 1, "beat_at": now, **more})


def asked() -> list[str]:
    return list(OrmQ.objects.order_by("key").values_list("key", flat=True))


def test_every_host_that_works_is_asked_for_the_drains_that_it_lacks() -> None:
    """Those that it has look for themselves, and nobody takes what is asked of a host that went silent."""
    for host in ("lacks one", "lacks two", "drains"):
        works(host, drains=2)
    works("silent", beat_at=database_time() - 3600)
    works("stops", stopping=True)
    for host, number in (("drains", 0), ("drains", 1), ("lacks one", 1)):
        assert hosts.take_drain(host, number, f"{host}/{number}", 30)
    wakeup.wake()
    assert asked() == ["lacks one", "lacks two", "lacks two"]


def test_a_drain_that_was_lost_keeps_no_host_asleep() -> None:
    works("here")
    Drain.objects.create(host="here", number=0, token="of a process that died", until=database_time() - 1)
    wakeup.wake()
    assert asked() == ["here"]


def test_many_messages_while_drains_are_missing_keep_no_heartbeat_from_its_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cluster that only has too much to do would be taken for one that went silent."""
    monkeypatch.setattr(wakeup, "WAITING_MOST", 5)
    works("busy", drains=2)
    works("other")
    for _ in range(10):
        wakeup.wake()
    assert [asked().count(host) for host in ("busy", "other")] == [5, 5]
    broker = get_broker("busy")
    assert len({broker.dequeue()[0][1] for _ in range(2)}) == 2
    wakeup.ask_for_beat("busy")
    assert asked().count("busy") == 6, "what was taken does not wait"


def test_what_a_host_is_asked_for_reaches_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A beat of one host says nothing of another, whose cluster may be wedged."""
    for host in ("here", "there"):
        works(host, beat_at=1.0)
    wakeup.ask_for_beat("there")
    assert get_broker("here").dequeue() is None
    assert len(get_broker("there").dequeue()) == 1
    monkeypatch.setenv("AGENTSITE_HOST", "there")
    tasks.beat()
    assert hosts.last_beat("there") > 1.0
    assert hosts.last_beat("here") == 1.0


@pytest.mark.usefixtures("away")
def test_a_wake_up_that_is_not_taken_costs_nobody_anything() -> None:
    works("here")
    wakeup.wake()
    assert asked() == []
