"""Runs that sleep: no worker waits, nobody is asked, and they go on when the time has come."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.engine.ledger import Step
from agents.testing import Trials, run
from conversations.approvals.decisions import decide
from conversations.ledger.claims import claimable
from conversations.models import Output, Prompt
from conversations.prompts import killswitch
from conversations.prompts.start import cancel_prompt
from conversations.prompts.waking import next_wake, wake_due
from conversations.usage import quotas
from conversations.verification.rules import problems_of
from conversations.verification.stored import verify
from tests.conversations.recorded import Site, meddle, pending
from tests.engine.cast import World
from tests.workflows import shop
from workflows.running import start_run

pytestmark = pytest.mark.django_db
FAR = "2030-01-01T00:00:00+00:00"


@pytest.fixture(autouse=True)
def _installed(site: Site, monkeypatch: pytest.MonkeyPatch) -> Any:
    with shop.installed(site, monkeypatch) as provider:
        yield provider


def problems(prompt: Prompt) -> list[str]:
    return [str(problem) for problem in verify(prompt.conversation_id).problems]


def asleep(ann: User, site: Site, name: str = "tomorrow", **input: Any) -> Prompt:
    started = start_run(getattr(shop, name), ann, input)
    site.works()
    started.refresh_from_db()
    return started


def comes(prompt: Prompt) -> None:
    """Its time comes: the row says that the first of its sleeps is over."""
    assert meddle(
        "UPDATE conversations_prompt SET wake_at = %s WHERE id = %s", ["2026-01-01 00:00:00+00:00", prompt.pk]
    )


def test_it_sleeps_without_a_worker_and_counts_in_no_quota(ann: User, site: Site) -> None:
    sleeper = asleep(ann, site, item="paper")
    assert (sleeper.state, sleeper.pauses, sleeper.lease_until, claimable(10)) == ("sleeping", 0, 0, [])
    assert sleeper.wake_at
    assert timedelta(hours=23) < sleeper.wake_at - timezone.now() < timedelta(hours=25)
    assert 23 * 3600 < next_wake() < 25 * 3600
    assert (wake_due(), quotas.running(ann.pk), problems(sleeper)) == (0, 0, [])


def test_it_goes_on_once_when_its_time_has_come(ann: User, site: Site) -> None:
    sleeper = asleep(ann, site, item="paper")
    comes(sleeper)
    assert [wake_due(), wake_due()] == [1, 0]
    sleeper.refresh_from_db()
    assert (sleeper.state, sleeper.wake_at) == ("running", None)
    site.works()
    site.approves(sleeper, ann)
    site.works()
    sleeper.refresh_from_db()
    assert (sleeper.state, site.world.done) == ("completed", [("shell.run", "order paper")])


def test_a_short_sleep_is_on_record_as_it_was(ann: User, site: Site) -> None:
    """The ledger of a run that slept verifies: it was woken by the system, after its time, and resumed for that."""
    sleeper = asleep(ann, site, "blink")
    while not wake_due():
        assert next_wake() < 1
    site.works()
    sleeper.refresh_from_db()
    assert (sleeper.state, problems(sleeper)) == ("completed", [])
    steps = [(step.type, step.actor, step.content.get("resumed_reason")) for step in sleeper.steps.order_by("seq")]
    assert ("action_result", "system", None) in steps
    assert ("resume", "runtime", "time") in steps


def test_beside_a_question_it_goes_on_with_the_answer(ann: User, site: Site) -> None:
    sleeper = asleep(ann, site, "beside")
    assert (sleeper.state, sleeper.pauses) == ("waiting_for_approval", 1)
    first = sleeper.wake_at
    comes(sleeper)
    assert wake_due() == 1
    sleeper.refresh_from_db()
    assert sleeper.state == "waiting_for_approval"  # its result is recorded, and the next of its sleeps is waited for
    assert first
    assert sleeper.wake_at
    assert timedelta(minutes=59) < sleeper.wake_at - first < timedelta(minutes=61)
    (gate,) = pending(sleeper)
    decide(gate.pk, ann, "answer", digest=gate.digest, via="page", answer="This one.")
    site.works()
    sleeper.refresh_from_db()
    assert (sleeper.state, sleeper.pauses) == ("sleeping", 1)
    comes(sleeper)
    assert wake_due() == 1
    site.works()
    sleeper.refresh_from_db()
    assert sleeper.state == "completed"
    value = Output.objects.get(prompt=sleeper, type="result").entry().model_dump()["output"]
    assert value == ["This one.", None, None]


def test_it_can_be_stopped_and_the_kill_switch_wakes_nobody(ann: User, site: Site) -> None:
    one, two = asleep(ann, site, item="paper"), asleep(ann, site, item="pens")
    cancel_prompt(one.pk, ann)
    comes(two)
    killswitch.turn_on(None, "Something is wrong.")
    assert wake_due() == 0
    killswitch.turn_off(None)
    assert wake_due() == 1
    one.refresh_from_db()
    assert (one.state, one.wake_at, problems(one)) == ("cancelled", None, [])


def test_in_a_trial_the_clock_is_put_forward() -> None:
    trial = run(shop.beside)
    assert (trial.state, list(trial.sleeping)) == ("waiting", ["hour", "hours"])
    trial.wake().answer("This one.")
    assert trial.state == "sleeping"
    assert trial.wake().value == ["This one.", None, None]
    with pytest.raises(ValueError, match="does not sleep"):
        trial.wake()


@pytest.mark.parametrize("dies_at", range(1, 8))
def test_wherever_a_process_dies_the_time_stays_what_it_was(dies_at: int) -> None:
    trial = Trials(dies_at=dies_at).run(shop.beside)
    slept = dict(trial.sleeping)
    trial.answer("This one.").crash()
    assert trial.sleeping == slept
    assert trial.wake("hours").value == ["This one.", None, None]


def test_what_is_beside_a_sleep_goes_on_to_its_end() -> None:
    """A reminder in a week, and meanwhile some work: call after call, past a question, and another workflow."""
    tools = World().tools()
    trial = run(shop.meanwhile, tools=tools, policies=[shop.nap.registered])
    assert (trial.state, set(trial.sleeping), list(trial.waiting)) == ("waiting", {"week", "nap/1"}, ["ask"])
    read = [step.path for step in trial.ledger if step.actor == "tool:fx.read"]
    assert read == ["one", "two"]
    trial.answer("Yes.")
    assert (trial.state, set(trial.sleeping)) == ("sleeping", {"week", "nap/1"})
    assert [step.path for step in trial.ledger if step.actor == "tool:fx.read"] == ["one", "two", "three", "four"]
    assert trial.wake("week").value == "All done."
    assert problems_of([replace(step, time=FAR) for step in trial.ledger]) == []


def slept() -> list[Step]:
    """The ledger of a run that slept for an hour, as if its time had come."""
    trial = run(shop.nap).wake()
    assert trial.value is None
    later = (timezone.now() + timedelta(hours=2)).isoformat()
    return [replace(step, time=later) for step in trial.ledger]


def changed(steps: list[Step], kind: str, actor: str = "", /, *, time: str | None = None, **said: Any) -> list[Step]:
    at = next(n for n, step in enumerate(steps) if step.type == kind and (not actor or step.actor == actor))
    new = replace(steps[at], payload=steps[at].payload | said, time=time or steps[at].time)
    return [*steps[:at], new, *steps[at + 1 :]]


def told(steps: list[Step]) -> str:
    return "; ".join(problem.what for problem in problems_of(steps))


def test_verification_knows_how_sleeps_go() -> None:
    steps = slept()
    for end in range(len(steps) + 1):
        assert problems_of(steps[:end]) == []
    early = timezone.now().isoformat()
    assert "before its time" in told(changed(steps, "action_result", "system", time=early))
    assert "but its first sleep is until" in told(changed(steps, "pause", until=early))
    assert "no sleep is over" in told([step for step in steps if step.actor != "system"])
    calls = [step for step in steps if step.payload.get("policy") != "sleep" and step.actor != "system"]
    assert "waits for nothing" in told(changed(calls, "pause", until=None))
