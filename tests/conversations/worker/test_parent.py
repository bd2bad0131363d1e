"""The worker's parent looks after its cluster whatever else fails."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.db import OperationalError
from django.db.models import F
from django_q.models import OrmQ
from django_q.signals import pre_enqueue
from pytest_django.fixtures import Settings

from conversations.database.sql import database_time
from conversations.ledger.claims import claim
from conversations.models import Drain, Prompt, Worker
from conversations.notifications import mail
from conversations.prompts.start import start_conversation, start_prompt
from conversations.worker import hosts
from conversations.worker import parent as parents
from conversations.worker.parent import Parent
from conversations.worker.processes import is_gone, this_process
from tests.agentsite.processes import wait_for

pytestmark = pytest.mark.django_db(transaction=True)


class Silent:
    """A cluster that runs and says nothing. `ended`: whether its host's drain was free each time it was ended."""

    running = True
    pid = 0

    def __init__(self) -> None:
        self.ended: list[bool] = []

    def stop(self, *_args: object) -> None:
        self.ended.append(not hosts.live_drains(hosts.this_host()))

    def start(self) -> None:
        """It is as silent as before."""

    def tend(self) -> float:
        """Return the seconds until it may start again."""
        return 60.0


@pytest.fixture
def cluster() -> Silent:
    return Silent()


@pytest.fixture
def parent(
    cluster: Silent, settings: Settings, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[Parent]:
    """The cluster's, with little patience; also for its start, unless a parameter says how many seconds."""
    settings.AGENTSITE_BEAT_SECONDS, settings.AGENTSITE_STOP_SECONDS = 0.5, 0.1
    settings.AGENTSITE_START_SECONDS = getattr(request, "param", 0.5)
    monkeypatch.setattr(parents, "LOOK_SECONDS", 0.02)
    made = Parent()
    monkeypatch.setattr(made, "cluster", cluster)
    monkeypatch.setattr(made.notifier, "look", lambda: None)
    made._prepare_cluster()
    with made.family.watching():
        yield made


def looks(parent: Parent, until: Callable[[], object]) -> None:
    """It looks after its cluster again and again."""

    def look() -> object:
        parent.tend()
        return until()

    wait_for(look)


def long_after() -> Callable[[], bool]:
    """Whether the cluster has been silent for three times as long as it may be."""
    over = time.monotonic() + 3 * settings.AGENTSITE_BEAT_SECONDS
    return lambda: time.monotonic() > over


def drains(seconds: float) -> None:
    """This host's drain is held for so long."""
    assert hosts.take_drain(hosts.this_host(), 0, f"{this_process()}/token", seconds)


@pytest.mark.parametrize("error", [TypeError("a wait without a pause"), OperationalError("no such table")])
def test_what_fails_in_telling_keeps_no_silent_cluster(
    error: Exception, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It neither ends the parent nor is it taken for a database that is away, without which nobody can beat."""
    tried: list[str] = []
    replaced: list[str] = []

    def tellings(*_args: object, **_more: object) -> None:
        tried.append("to tell")
        raise error

    monkeypatch.setattr(mail, "due", tellings)
    monkeypatch.setattr(Parent, "_replace", lambda parent: replaced.append("anew"))
    settings.AGENTSITE_BEAT_SECONDS = settings.AGENTSITE_START_SECONDS = 0.5
    parent = Parent()
    monkeypatch.setattr(parent, "cluster", Silent())

    def looked_after() -> bool:
        parent.tend()
        return bool(replaced and tried)

    with parent.family.watching():
        wait_for(looked_after)


def test_a_silent_cluster_is_replaced_when_its_drain_has_ended(parent: Parent, cluster: Silent) -> None:
    """Also where that takes longer than running effects are given: their ends take time too."""
    drains(2)
    looks(parent, lambda: cluster.ended)
    assert cluster.ended == [True]


@pytest.mark.parametrize("parent", [60], indirect=True)
def test_a_cluster_that_is_starting_has_a_time_of_its_own(parent: Parent, cluster: Silent) -> None:
    """On a small busy host it takes longer than a running one may be silent. From the first beat on, that counts."""
    looks(parent, long_after())
    assert cluster.ended == []
    hosts.beat(parent.host)
    looks(parent, lambda: cluster.ended)


def test_a_question_that_was_not_taken_is_no_silence(parent: Parent, cluster: Silent) -> None:
    """Nobody answers what nobody was asked; the cluster may be well, and hold turns."""

    def refuses(**_more: object) -> None:
        raise OperationalError("the queue is away")

    pre_enqueue.connect(refuses)
    try:
        looks(parent, long_after())
    finally:
        pre_enqueue.disconnect(refuses)
    assert cluster.ended == []


def test_a_replacement_that_breaks_off_leaves_no_stop_mark(
    parent: Parent, cluster: Silent, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With it the host would beat and run nothing any more."""

    def stops() -> bool:
        return Worker.objects.get(host=parent.host).stopping

    def fails(_host: str) -> dict[int, str]:
        if stops():
            raise OperationalError("the database is away")
        return {}

    monkeypatch.setattr(hosts, "live_drains", fails)
    looks(parent, stops)
    parent.tend()
    assert (stops(), cluster.ended) == (False, [])


def test_a_cluster_that_keeps_dying_starts_again_after_each_pause_and_little_happens_meanwhile(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each round asks the database, and leaves wake-ups that nobody takes."""
    settings.AGENTSITE_SWEEP_SECONDS, settings.AGENTSITE_BEAT_SECONDS = 30, 90  # longer than the pauses
    parent = Parent()
    parent.cluster.command = [sys.executable, "-c", "raise SystemExit(1)"]
    monkeypatch.setattr(parent.notifier, "look", lambda: None)
    rounds, tend, began = [0], parent.tend, time.monotonic()

    def counted() -> None:
        rounds[0] += 1
        tend()
        if parent.cluster.starts == 3:  # after 0.5 s, and after another 1 s
            parent.family.signals += 1

    monkeypatch.setattr(parent, "tend", counted)
    parent()
    assert rounds[0] <= 10
    assert time.monotonic() - began < settings.AGENTSITE_SWEEP_SECONDS


def test_a_cluster_that_does_not_run_is_asked_for_no_drains(parent: Parent, cluster: Silent) -> None:
    """Twice a second, for as long as it does not start: it would first have to work off what nobody took."""
    OrmQ.objects.all().delete()
    cluster.running = False
    parent.tend()
    assert OrmQ.objects.filter(key=parent.host).count() == 1  # the beat
    cluster.running = True
    parent.tend()
    assert OrmQ.objects.filter(key=parent.host).count() == 3  # another beat, and a drain


def test_it_is_ready_with_a_drain_and_a_beat_after_its_own_start(parent: Parent) -> None:
    """A row of an earlier run may have the same process id: in a container they repeat."""
    began, pid = database_time(), os.getpid()
    drains(60)
    Worker.objects.update(started_at=began - 60, beat_at=began - 30)
    assert not hosts.is_ready(parent.host, pid, began)
    Worker.objects.update(started_at=began + 1, beat_at=began + 1)
    assert not hosts.is_ready(parent.host, pid, began)
    Worker.objects.update(beat_at=began + 2)
    assert hosts.is_ready(parent.host, pid, began)
    assert not hosts.is_ready(parent.host, pid + 1, began)
    Drain.objects.update(until=0)
    assert not hosts.is_ready(parent.host, pid, began)


def test_a_stop_mark_of_another_parent_stays(parent: Parent) -> None:
    """This one is about to end: another has begun on its host."""
    Worker.objects.update(pid=1, stopping=True)
    parent.tend()
    assert Worker.objects.get().stopping


def test_a_parent_that_is_told_to_stop_cuts_no_drain_off(parent: Parent, cluster: Silent) -> None:
    """A replacement that is under way is left to the end of everything, which lets running effects end."""
    drains(60)
    parent.family.signals += 1
    looks(parent, long_after())
    assert cluster.ended == []


def named(pid: int) -> str:
    """The name of the process with this id."""
    return f"{pid}.{this_process().partition('.')[2]}"


@pytest.fixture
def dead() -> str:
    """The name of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return named(process.pid)


@pytest.fixture
def living() -> Iterator[subprocess.Popen[bytes]]:
    """A process that goes on until it is killed."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def drained(host: str, process: str, prompt: Prompt) -> None:
    """The host's drain is this process. It has held this turn for seven seconds, and does for another ten minutes."""
    assert hosts.take_drain(host, 0, f"{process}/token", 600)
    assert claim(prompt.pk, hosts.worker_name(host, process), 600)
    Prompt.objects.filter(pk=prompt.pk).update(claimed_at=F("claimed_at") - 7)


def new_turn(ann: User) -> Prompt:
    return start_prompt(start_conversation(ann), ann, "Go.")


def was_lost(prompt: Prompt) -> bool:
    """Whether it may be claimed at once, with a strike, and its running time was counted."""
    held = claim(prompt.pk, "worker:test", 600)
    prompt.refresh_from_db()
    return held is not None and held.strikes == 1 and 7 <= prompt.running_seconds < 60


def test_what_a_drain_held_that_died_goes_on_at_the_next_look(parent: Parent, dead: str, ann: User) -> None:
    """Nobody waits for leases to run out that nobody renews (I2)."""
    prompt = new_turn(ann)
    drained(parent.host, dead, prompt)
    OrmQ.objects.all().delete()
    parent.tend()
    assert not hosts.live_drains(parent.host)
    assert OrmQ.objects.filter(key=parent.host).count() == 2  # a beat, and a drain
    assert was_lost(prompt)


@pytest.mark.parametrize("parent", [30], indirect=True)  # it is not to lose its patience
def test_what_a_living_drain_holds_is_left_to_it(parent: Parent, ann: User) -> None:
    """It may be slow, or the one of an earlier cluster: then its leases run out by themselves."""
    prompt = new_turn(ann)
    drained(parent.host, this_process(), prompt)
    parent.tend()
    assert hosts.live_drains(parent.host)
    assert claim(prompt.pk, "worker:test", 600) is None


@pytest.mark.parametrize("parent", [30], indirect=True)  # it is not to lose its patience
def test_what_a_drain_in_another_container_holds_is_left_to_it(
    parent: Parent, dead: str, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that share a host's name: an id that no process has here may be that of a living one there."""
    prompt = new_turn(ann)
    with monkeypatch.context() as there:
        there.setattr(os, "getpid", lambda: int(dead.partition(".")[0]))
        there.setattr(os, "readlink", lambda _path: "pid:[1]")
        there.setattr("socket.gethostname", lambda: "another")
        elsewhere = this_process()
    drained(parent.host, elsewhere, prompt)
    parent.tend()
    hosts.begin(parent.host, 2)
    assert claim(prompt.pk, "worker:test", 600) is None


def test_what_is_killed_and_goes_on_for_a_moment_is_buried_later(
    parent: Parent, living: subprocess.Popen[bytes], ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster that is killed is not gone at once; by then the next one has the drain's place."""
    prompt = new_turn(ann)
    drained(parent.host, named(living.pid), prompt)
    monkeypatch.setattr(parents, "STOP_MARGIN_SECONDS", 0)
    parent._replace()
    assert hosts.take_drain(parent.host, 0, f"{this_process()}/new", 600)
    assert claim(prompt.pk, "worker:test", 600) is None
    living.kill()
    os.waitid(os.P_PID, living.pid, os.WEXITED | os.WNOWAIT)  # nobody has asked what became of it
    parent.tend()
    assert was_lost(prompt)
    assert hosts.live_drains(parent.host)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc says that it is one")
def test_a_dead_process_whose_parent_does_not_ask_is_gone() -> None:
    """In a container whose first process adopts orphans and never looks after them."""
    careless = "import os, signal\nif child := os.fork():\n    print(child, flush=True)\n    signal.pause()"
    with subprocess.Popen([sys.executable, "-c", careless], stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        zombie = named(int(parent.stdout.readline()))
        try:
            wait_for(lambda: is_gone(zombie))
            os.kill(int(zombie.partition(".")[0]), 0)  # its id is still taken
        finally:
            parent.kill()


def test_a_worker_that_starts_again_takes_up_what_was_lost_with_it(dead: str, ann: User) -> None:
    """All its processes were killed: the new ones do not wait either."""
    host = hosts.this_host()
    hosts.begin(host, 1)
    prompt = new_turn(ann)
    drained(host, dead, prompt)
    hosts.begin(host, 2)
    assert was_lost(prompt)
