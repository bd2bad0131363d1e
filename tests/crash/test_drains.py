"""Several drains on a host: each is a process of its own, and what happens to one is nothing to the others."""

from __future__ import annotations

from conversations.database.sql import database_time
from conversations.ledger.claims import STRIKES
from conversations.models import Prompt, Worker
from conversations.worker import hosts
from tests.crash.acting import MARKS, Start, both, ended, idle
from tests.crash.processes import alive, drain_of, kill, pause, wait_for
from tests.crash.site import Site

pytestmark = MARKS
LONG = {"AGENTSITE_DRAINS": "2", "AGENTSITE_LEASE_SECONDS": "600"}


def drains(site: Site, count: int = 2) -> dict[int, str]:
    """Wait until the host has so many drains; return their tokens by number."""
    return wait_for(lambda: len(live := hosts.live_drains(site.name)) == count and live, "the drains", site) or {}


def two_that_run(site: Site, text: str) -> list[Prompt]:
    """Start two turns that the two drains run, one each."""
    prompts: list[Prompt] = []
    while {prompt.pk % 2 for prompt in prompts} != {0, 1}:
        prompts.append(site.say(text))
    wait_for(lambda: site.effects()["1/0 began"] == len(prompts), "the tools' beginnings", site)
    assert drain_of(prompts[0]) != drain_of(prompts[-1])
    return [prompts[0], prompts[-1]]


@both
def test_one_drain_of_two_is_killed(site: Site, start: Start) -> None:
    """Its turn goes on at once, though its lease would take ten minutes. The other drain does not notice."""
    start(**LONG)
    drains(site)
    lost, other = two_that_run(site, "take your time")
    kill(site, drain_of(lost))
    assert (ended(site, lost).state, lost.fence) == ("completed", 2)
    assert (ended(site, other).state, other.fence) == ("completed", 1)
    assert len(drains(site)) == 2


def test_the_number_of_a_drain_that_died_is_taken_again_while_the_other_works(site: Site, start: Start) -> None:
    start(**LONG)
    first = drains(site)
    kill(site, int(first[0].partition(".")[0]))
    wait_for(lambda: hosts.live_drains(site.name).get(0) not in {None, first[0]}, "the new drain", site)
    assert hosts.live_drains(site.name)[1] == first[1]
    assert {ended(site, site.say()).state for _ in range(4)} == {"completed"}


def test_a_turn_that_kills_its_drain_takes_no_other_turn_with_it(site: Site, start: Start) -> None:
    """Both drains try it and are lost; it is given up, and what ran beside it is not."""
    start(**{**LONG, "AGENTSITE_LEASE_SECONDS": "2"})
    drains(site)
    deadly, others = site.say("die"), [site.say("take long") for _ in range(3)]
    assert (ended(site, deadly).state, deadly.stop_reason) == ("failed", "crash_loop")
    assert site.effects()["1/0"] == STRIKES
    assert [ended(site, other).state for other in others] == ["completed"] * 3


@both
def test_a_drain_that_hangs_is_ended_and_keeps_no_short_task_waiting(site: Site, start: Start) -> None:
    """Its turn goes on in the other one. Nobody takes its number before, so that one process runs short tasks."""
    worker = start(AGENTSITE_DRAINS="2", AGENTSITE_BEAT_SECONDS="20")
    idle(site, worker)
    first = drains(site)
    prompt = site.say("take your time")
    wait_for(lambda: site.effects()["1/0 began"], "the tool's beginning", site)
    hung, began_at = drain_of(prompt), Worker.objects.get(host=site.name).started_at
    pause(site, hung)
    wait_for(lambda: hung not in alive(site), "the end of what hangs", site)
    after = database_time()
    second = drains(site)
    wait_for(lambda: hosts.last_beat(site.name) > after, "a beat", site)
    assert len(set(first.values()) & set(second.values())) == 1
    assert Worker.objects.get(host=site.name).started_at == began_at, "the whole cluster was replaced"
    assert "hangs" in site.said()
    assert ended(site, prompt).state == "completed"


def test_all_drains_obey_the_stop_mark(site: Site, start: Start) -> None:
    """CP30: both let their tools end, and none is left."""
    worker = start(**LONG)
    drains(site)
    prompts = two_that_run(site, "take long")
    assert worker.stop() == 0
    for prompt in prompts:
        prompt.refresh_from_db()
        assert (prompt.state, prompt.lease_until) == ("running", 0)
    assert not hosts.live_drains(site.name)


def test_drains_whose_whole_family_was_left_alone_end(site: Site, start: Start) -> None:
    """Their parent was killed, and no other takes its place: nobody would tell them to stop, or watch over them."""
    worker = start(**LONG)
    drains(site)
    worker.kill()
    wait_for(lambda: not alive(site), "the end of every process", site)
