"""Runs of workflows over restarts and deploys, with the real worker; and many of them at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.utils import timezone

from conversations.models import Prompt
from conversations.prompts import startable
from conversations.prompts.start import start_conversation, start_prompt
from tests.crash.acting import MARKS, Start, both, ended
from tests.crash.app import workflows
from tests.crash.processes import wait_for
from tests.crash.site import Site
from workflows.definition import Workflow

pytestmark = MARKS
ALL = (workflows.everything, workflows.fails, workflows.month, workflows.part, workflows.question)


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    """This process starts what the processes of the site run."""
    for each in ALL:
        startable.register(each, each.registered)
    yield
    for each in ALL:
        startable.unregister(each.policy_name)


def started(site: Site, workflow: Workflow) -> Prompt:
    person = site.person()
    payload = {"name": "a"} if workflow is workflows.everything else {}
    return start_prompt(start_conversation(person), person, policy=workflow.policy_name, payload=payload)


def becomes(site: Site, run: Prompt, *states: str) -> None:
    def look() -> bool:
        run.refresh_from_db()
        return run.state in states

    wait_for(look, f"the state {' or '.join(states)}", site)


@both
def test_one_that_sleeps_a_month_goes_on_after_a_deploy(site: Site, start: Start) -> None:
    worker = start()
    run = started(site, workflows.month)
    becomes(site, run, "sleeping")
    assert run.wake_at
    assert timedelta(days=29) < run.wake_at - timezone.now() < timedelta(days=31)
    assert worker.stop() == 0
    Prompt.objects.filter(pk=run.pk).update(wake_at=timezone.now())
    start(CRASH_APP_VERSION="2")
    becomes(site, run, "completed", "failed")
    assert (run.state, site.effects()) == ("completed", {"2": 1})


def test_one_that_asks_a_question_waits_over_a_restart(site: Site, start: Start) -> None:
    worker = start()
    run = started(site, workflows.question)
    becomes(site, run, "waiting_for_approval")
    worker.kill()
    (question,) = site.pending(run)
    site.answer(question, "this")
    start()
    assert (ended(site, run).state, site.effects()) == ("completed", {"2": 1})


def test_ten_run_at_once_and_one_that_raises_leaves_the_worker_alive(site: Site, start: Start) -> None:
    worker = start()
    failing = started(site, workflows.fails)
    runs = [started(site, workflows.everything) for _ in range(10)]

    def look() -> bool:
        for run in runs:
            for output in site.pending(run):
                site.answer(output, "this") if output.ask == "question" else site.decide(output, "approve")
        return Prompt.objects.filter(pk__in=[run.pk for run in runs], state="completed").count() == 10

    wait_for(look, "the end of ten runs", site)
    failing.refresh_from_db()
    assert (failing.state, failing.stop_reason) == ("failed", "error")
    assert worker.process.poll() is None
    assert site.effects() == {"1": 10, "2": 10, "4/1": 10, "6": 10}
