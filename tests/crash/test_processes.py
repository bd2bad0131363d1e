"""Processes that die, hang or are stopped at any time: every turn ends, and nothing is done twice."""

from __future__ import annotations

import signal
import time

import pytest
from django.db import connection

from conversations.ledger.claims import STRIKES, claimable
from conversations.models import Step
from conversations.models import Worker as WorkerRow
from conversations.prompts.start import cancel_prompt
from tests.crash.acting import (
    MARKS,
    Start,
    asks,
    began,
    both,
    doing,
    draining,
    ended,
    idle,
    killed_at,
    payloads,
    postgres,
)
from tests.crash.processes import alive, drain_of, kill, kill_all, pause, running, wait_for
from tests.crash.site import Site
from tests.crash.turns import LONG_COMMAND

pytestmark = MARKS


# Between the decision and the resume


@both
def test_a_decision_whose_process_dies_before_it_wakes_a_worker_is_found_by_a_drain(site: Site, start: Start) -> None:
    """CP14, CP15, T-11, T-27: the process that decides is killed between its commit and its wake-up."""
    start()
    prompt = site.say("ask")
    gate = asks(site, prompt)
    assert doing(site, "approve", gate.pk, point="before_wake") == -signal.SIGKILL
    site.decide(gate, "approve")  # clicked again: it is decided already
    assert ended(site, prompt).state == "completed"
    assert site.effects() == {"1/0": 1, "2/0": 1}


@both
def test_a_worker_killed_while_a_person_decides_leaves_the_turn_to_the_next(site: Site, start: Start) -> None:
    """T-10: a pending approval outlives every process."""
    worker = start()
    prompt = site.say("ask")
    gate = asks(site, prompt)
    worker.kill()
    site.decide(gate, "approve")
    start()
    assert ended(site, prompt).state == "completed"
    assert site.effects() == {"1/0": 1, "2/0": 1}


@postgres
def test_cut_database_connections_are_opened_again(site: Site, start: Start) -> None:
    """All connections but this test's are ended, while a turn waits and while a tool runs."""
    start()
    prompt, slow = site.say("ask"), site.say("take long")
    asks(site, prompt)
    began(site)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    assert ended(site, prompt).state == "completed"
    assert ended(site, slow).state == "completed"
    effects = site.effects()
    assert (effects["1/0"], effects["2/0"], effects["1/0 began"]) == (1, 1, 1)


def test_a_tool_that_changed_while_a_person_decided_does_not_run(site: Site, start: Start) -> None:
    """T-19, T-44: what was approved is not what would run now."""
    worker = start()
    prompt = site.say("count")
    gate = asks(site, prompt)
    worker.stop()
    site.decide(gate, "approve")
    start(CRASH_APP_VERSION="2")
    assert ended(site, prompt).state == "completed"
    assert [result["code"] for result in payloads(prompt, "action_result")] == ["tool_changed"]
    assert not site.effects()


# The cluster


@both
@pytest.mark.parametrize("victims", [1, 2])
def test_the_cluster_whose_idle_workers_were_killed_is_replaced(site: Site, start: Start, victims: int) -> None:
    """T-25: q2 can wedge without a word; a prompt that comes after must run."""
    worker = start(AGENTSITE_BEAT_SECONDS="5")
    for pid in idle(site, worker).workers[:victims]:
        kill(site, pid)
    assert ended(site, site.say()).state == "completed"


def test_the_cluster_whose_parent_was_killed_is_replaced_as_a_whole(site: Site, start: Start) -> None:
    """T-25: none of its processes works on beside those of the new one."""
    worker = start()
    first = idle(site, worker)
    kill(site, first.parent)
    family = {first.parent, first.sentinel, *first.workers, *first.others}
    wait_for(lambda: not family & set(alive(site)), "the end of the old cluster", site)
    assert ended(site, site.say()).state == "completed"


@pytest.mark.parametrize("victim", ["a worker", "the other worker", "monitor", "pusher", "sentinel"])
def test_each_process_of_the_cluster_may_be_killed_in_the_middle_of_a_turn(
    site: Site, start: Start, victim: str
) -> None:
    """T-25: one of the two workers drains."""
    worker = start(AGENTSITE_BEAT_SECONDS="5")
    found = idle(site, worker)
    prompt = site.say("take long")
    began(site)
    named = dict(zip(["a worker", "the other worker", "monitor", "pusher"], found.workers + found.others, strict=True))
    kill(site, named.get(victim, found.sentinel))
    assert ended(site, prompt).state == "completed"
    assert site.effects()["1/0 began"] == 1


@pytest.mark.parametrize("whole", [False, True])
def test_turns_go_on_before_the_lease_of_a_worker_that_died_runs_out(site: Site, start: Start, whole: bool) -> None:
    """I2: its parent sees it; if the whole worker was killed, the next one does. The lease would take ten minutes."""
    long = {"AGENTSITE_LEASE_SECONDS": "600"}
    start(**long)
    prompt = site.say("take your time")
    began(site)
    if whole:
        kill_all(site)
        start(**long)
    else:
        kill(site, drain_of(prompt))
    assert ended(site, prompt).state == "completed"
    assert prompt.fence == 2


def test_a_host_that_went_silent_is_replaced_though_another_works(site: Site, start: Start) -> None:
    """T-25: what runs tasks there says nothing of this one, and is left as it is."""

    def rows() -> dict[str, tuple[float, float]]:
        return {row.host: (row.started_at, row.beat_at) for row in WorkerRow.objects.all()}

    both_beat = {"AGENTSITE_BEAT_SECONDS": "5"}
    other = f"{site.name}_other"
    worker = start(**both_beat)
    start(AGENTSITE_HOST=other, **both_beat)
    found = idle(site, worker)
    wait_for(lambda: other in rows() and rows()[other][1] > rows()[other][0], "the other's first beat", site)
    before = rows()
    for pid in found.workers:
        pause(site, pid)
    wait_for(lambda: not set(found.workers) & set(alive(site)), "the end of what stands still", site)
    wait_for(lambda: rows()[site.name][1] > rows()[site.name][0] > before[site.name][0], "a beat of the new one", site)
    assert rows()[other][0] == before[other][0]


# The worker itself


def test_a_drain_that_never_ends_is_not_cut_off(site: Site, start: Start) -> None:
    """A site that is never idle has one for weeks: q2 knows a longest time for tasks, and gives them out again."""
    start(DJANGO_SETTINGS_MODULE="tests.crash.hasty")
    prompt = ended(site, site.say("take longer than three leases"))
    assert (prompt.state, prompt.fence) == ("completed", 1)
    assert site.effects() == {"1/0 began": 1, "1/0 ended": 1}


def test_a_killed_worker_leaves_no_process(site: Site, start: Start) -> None:
    """Its cluster ends by itself, also while it holds a turn; a new worker then has the host for itself."""
    worker = start()
    prompt = site.say("take long")
    began(site)
    left = set(alive(site))
    worker.kill()
    start()
    assert ended(site, prompt).state == "completed"
    assert site.effects() == {"1/0 began": 1, "1/0 ended": 1}
    wait_for(lambda: not left & set(alive(site)), "the end of the old cluster", site)


def test_sigterm_lets_a_running_tool_end(site: Site, start: Start) -> None:
    """CP30: exit code 0, the result recorded, nothing begun after it; the next worker goes on."""
    worker = start()
    prompt = site.say("take long")
    began(site)
    assert worker.stop() == 0
    assert not alive(site)
    prompt.refresh_from_db()
    assert (prompt.state, prompt.lease_until) == ("running", 0)
    assert payloads(prompt, "action_result") == [{"output": "slept"}]
    assert not payloads(prompt, "action_call", "2")
    start()
    assert ended(site, prompt).state == "completed"
    assert site.effects() == {"1/0 began": 1, "1/0 ended": 1}


def test_sigterm_interrupts_a_tool_that_runs_too_long(site: Site, start: Start) -> None:
    """CP30: after its time the tool is ended; its owner says what became of it."""
    worker = start(AGENTSITE_STOP_SECONDS="1")
    prompt = site.say("take for ever")
    began(site)
    assert worker.stop() == 0
    assert not alive(site)
    start()
    assert asks(site, prompt).ask == "interrupted"
    assert ended(site, prompt).state == "completed"
    assert site.effects() == {"1/0 began": 1}
    assert payloads(prompt, "action_result")[0]["code"] == "it_did_not"


def test_sigterm_lets_the_model_say_its_answer_to_the_end(site: Site, start: Start) -> None:
    """CP30: the answer is kept, and what it asks for is done by the next worker."""
    worker = start()
    prompt = site.say("talk")
    wait_for(site.asked, "the request to the model", site)
    assert worker.stop() == 0
    assert len(payloads(prompt, "action_result", "1")) == 1
    assert not site.effects()
    start()
    assert ended(site, prompt).state == "completed"
    assert (len(site.asked()), site.effects()) == (2, {"1/0": 1})


# Leases and fences


@both
def test_a_worker_that_stood_still_writes_nothing_any_more(site: Site, start: Start) -> None:
    """T-23: stopped beyond its lease, taken over, continued: its tool is ended, its writes are refused."""
    start(AGENTSITE_DRAINS="2")
    prompt = site.say("take long")
    began(site)
    stalled, over_at = drain_of(prompt), time.monotonic() + 5
    pause(site, stalled)
    try:
        gate = asks(site, prompt)
        taken_over = Step.objects.filter(prompt=prompt).latest("seq").seq
        assert gate.ask == "interrupted"
        assert drain_of(prompt) != stalled
        wait_for(lambda: time.monotonic() > over_at, "the end of the tool's time: its result is what comes next", site)
    finally:
        kill(site, stalled, signal.SIGCONT)
    gave_up = ("another worker took over the prompt", "left to another worker")
    wait_for(lambda: any(words in site.said() for words in gave_up), "the old worker's giving up", site)
    assert Step.objects.filter(prompt=prompt).latest("seq").seq == taken_over
    assert ended(site, prompt).state == "completed"
    assert payloads(prompt, "action_result")[0]["code"] == "it_did_not"
    assert site.effects()["1/0 began"] == 1


@both
def test_a_claim_alone_shuts_the_old_worker_out(site: Site, start: Start) -> None:
    """I8: the new worker dies before it writes a step, so that only the fence can tell that the old one is late."""
    prompt = site.say("take long")
    old = draining(site)
    began(site)
    over_at = time.monotonic() + 5
    pause(site, old.pid)
    wait_for(lambda: claimable(1), "the end of the lease", site)
    new = draining(site, AGENTSITE_HOST=f"{site.name}_new", **killed_at(site, "after_claim"))
    assert new.wait() == -signal.SIGKILL
    wait_for(lambda: time.monotonic() > over_at, "the end of the tool's time: its result is what comes next", site)
    kill(site, old.pid, signal.SIGCONT)
    assert old.wait() == 0
    assert payloads(prompt, "action_result") == []  # it claims the prompt anew, and asks what became of the call
    start()
    assert ended(site, prompt).state == "completed"
    assert payloads(prompt, "action_result")[0]["code"] == "it_did_not"


@both
def test_a_tool_longer_than_three_leases_runs_once(site: Site, start: Start) -> None:
    """T-22: the lease is renewed by a thread of its own."""
    start(AGENTSITE_LEASE_SECONDS="4")
    prompt = ended(site, site.say("take longer than three leases"))
    assert (prompt.state, prompt.fence) == ("completed", 1)
    assert site.effects() == {"1/0 began": 1, "1/0 ended": 1}


def test_a_stopped_turn_ends_its_tool_at_once(site: Site, start: Start) -> None:
    """T-34: within seconds the turn is cancelled and every process of the command is gone."""
    start()
    prompt = site.say("wait")
    site.decide(asks(site, prompt), "approve")
    wait_for(lambda: running(LONG_COMMAND), "the command", site)
    asked_at = time.monotonic()
    cancel_prompt(prompt.pk, site.person())
    assert ended(site, prompt).state == "cancelled"
    wait_for(lambda: not running(LONG_COMMAND), "the command's end", site)
    assert time.monotonic() - asked_at < 10
    assert [result["code"] for result in payloads(prompt, "action_result")] == ["cancelled"]


def test_a_turn_stopped_while_nobody_works_is_not_gone_on_with(site: Site, start: Start) -> None:
    """T-34: the next worker only closes it."""
    worker = start()
    prompt = site.say("take long")
    began(site)
    worker.kill()
    kill_all(site)
    cancel_prompt(prompt.pk, site.person())
    start()
    assert ended(site, prompt).state == "cancelled"
    assert site.effects() == {"1/0 began": 1}
    assert len(site.asked()) == 1


def test_workers_lost_at_one_step_are_enough(site: Site, start: Start) -> None:
    """The turn that takes its worker down is given up, and says so; others run."""
    start()
    prompt = ended(site, site.say("die"))
    assert (prompt.state, prompt.stop_reason) == ("failed", "crash_loop")
    assert site.effects() == {"1/0": STRIKES}
    assert ended(site, site.say()).state == "completed"


@both
def test_one_of_five_workers_that_wake_at_once_claims_the_prompt(site: Site) -> None:
    """T-24, CP31: five hosts hear of one prompt."""
    prompt, go = site.say(), site.folder / "go"
    drains = [draining(site, go, AGENTSITE_HOST=f"{site.name}_{number}") for number in range(5)]
    wait_for(lambda: len(list(site.folder.glob("go.*"))) == 5, "five drains", site)
    go.touch()
    assert [drain.wait() for drain in drains] == [0] * 5
    assert (ended(site, prompt).state, prompt.fence) == ("completed", 1)
    assert len(payloads(prompt, "action_start", "")) == 1
