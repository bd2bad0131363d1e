"""Batches over kills of workers and web servers: every line runs once, with nobody there to start it again."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import pytest

from conversations.accounts.keys import make_key
from conversations.models import Prompt, Scope
from conversations.prompts import killswitch, startable
from conversations.verification.stored import verify
from tests.crash.acting import MARKS, Start, both, idle, killed_at, served
from tests.crash.app import workflows
from tests.crash.processes import alive, drain_of, kill, wait_for
from tests.crash.site import Site
from workflows.batches.standing import standing_of
from workflows.batches.starting import start_batch
from workflows.models import Batch

pytestmark = MARKS
LINES = 12


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process starts what the processes of the site run."""
    monkeypatch.setattr("workflows.discovery.installed", lambda: {"fx.line": workflows.line})
    startable.register(workflows.line, workflows.line.registered)
    yield
    startable.unregister(workflows.line.policy_name)


def inputs() -> list[dict[str, object]]:
    return [{"name": f"line {number}"} for number in range(1, LINES + 1)]


def waiting_batch(site: Site) -> Batch:
    """A batch of which no line has started: everything else is done by the workers."""
    killswitch.turn_on(None, "A test.")
    batch = start_batch(workflows.line, site.person(), inputs())
    assert standing_of(batch).counts == {"waits": LINES}
    killswitch.turn_off(None)
    return batch


def ends(site: Site, batch: Batch, start: Start, **more: str) -> int:
    """Wait for its end, with a worker that is started again whenever it dies, as `serve` and a service manager do it.

    Say of every call that was cut off that it did not run; return how many there were.
    """
    cards, worker = 0, start(**more)

    def look() -> bool:
        nonlocal cards, worker
        if worker.process.poll() is not None:
            worker = start(**more)
        standing = standing_of(Batch.objects.get(pk=batch.pk))
        for run in (line.run for line in standing.lines if line.run):
            for output in site.pending(run):
                assert output.ask == "interrupted"
                site.decide(output, "it_did_not")
                cards += 1
        return standing.ended

    wait_for(look, "the end of the batch", site)
    return cards


def ran_once(batch: Batch, keys: Path, cards: int) -> None:
    """Every line has one run, which completed, and no effect happened twice."""
    standing = standing_of(Batch.objects.get(pk=batch.pk))
    assert standing.counts == {"completed": LINES}
    assert [line.result for line in standing.lines] == [f"line {number}" for number in range(1, LINES + 1)]
    runs = Prompt.objects.filter(policy="workflow:fx.line")
    assert sorted(runs.values_list("request_key", flat=True)) == sorted(
        f"batch:{batch.pk}:{number}" for number in range(1, LINES + 1)
    )
    effects = Counter(keys.read_text().split())
    assert set(effects.values()) == {1}
    assert LINES - cards <= len(effects) <= LINES
    assert [verify(run.conversation_id).problems for run in runs] == [[]] * LINES


@both
@pytest.mark.parametrize(("point", "nth"), [("before_start", 3), ("before_line", 7)])
def test_a_worker_that_dies_while_it_starts_a_line(site: Site, start: Start, point: str, nth: int) -> None:
    keys, batch = site.folder / "keys", waiting_batch(site)
    cards = ends(site, batch, start, CRASH_KEYS=str(keys), **killed_at(site, point, nth))
    passes = (site.folder / "passes").read_text().split()
    assert passes.count(point) >= nth  # so it was killed
    ran_once(batch, keys, cards)


@both
def test_two_workers_one_of_which_is_killed_again_and_again(site: Site, start: Start) -> None:
    keys, batch = site.folder / "keys", waiting_batch(site)
    worker = start(CRASH_KEYS=str(keys))
    start(CRASH_KEYS=str(keys), AGENTSITE_HOST=f"{site.name}-b")
    idle(site, worker)
    wait_for(keys.exists, "the first effect", site)
    started = Prompt.objects.filter(policy="workflow:fx.line", fence__gt=0).order_by("-pk").first()
    assert started
    if (drain := drain_of(started)) in alive(site):
        kill(site, drain)
    worker.kill()
    ran_once(batch, keys, ends(site, batch, start, CRASH_KEYS=str(keys)))


@both
@pytest.mark.parametrize("point", ["after_batch", "before_line"])
def test_a_web_server_that_dies_once_the_batch_is_stored(site: Site, start: Start, point: str) -> None:
    """Nobody sends it again, and no browser is open: the workers find it. Sent again, it is the same batch."""
    keys, key = site.folder / "keys", make_key(site.person(), "a program", Scope.values)[1]
    with served(site, **killed_at(site, point)) as (process, port):
        with pytest.raises((HTTPException, OSError)):
            sends(port, key)
        assert process.wait() == -signal.SIGKILL
    batch = Batch.objects.get()
    assert Prompt.objects.count() == 0
    ran_once(batch, keys, ends(site, batch, start, CRASH_KEYS=str(keys)))
    with served(site) as (_, port):
        assert sends(port, key) == (202, batch.pk)
    assert Prompt.objects.count() == LINES


def sends(port: int, key: str) -> tuple[int, int]:
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json", "Idempotency-Key": "k-1"}
    try:
        connection.request("POST", "/api/workflows/fx.line/batch/", json.dumps({"lines": inputs()}), headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())["id"]
    finally:
        connection.close()
