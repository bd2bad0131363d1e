"""A worker that dies while a trigger fires: the time is not lost, and starts one turn (CP32)."""

from __future__ import annotations

import signal
from datetime import UTC, datetime, timedelta

import pytest

from agents.plugins.triggers.schedule import Schedule
from conversations.models import Firing, Prompt, Trigger
from conversations.triggers import managing
from conversations.triggers.managing import NewTrigger
from tests.crash.acting import MARKS, Start, ended, killed_at
from tests.crash.processes import wait_for
from tests.crash.site import Site

pytestmark = MARKS


def due_trigger(site: Site) -> Trigger:
    """Make a trigger of the site that is due now, once."""
    time = datetime.now(UTC)
    schedule = Schedule("UTC", at=time + timedelta(days=1))
    made = managing.create(site.person(), NewTrigger(schedule, "Look at the logs."))
    Trigger.objects.filter(pk=made.pk).update(at=time, slot=time, next_at=time)
    return made


@pytest.mark.parametrize(
    ("site", "point"),
    [("sqlite", "after_slot"), ("postgres", "after_slot"), ("postgres", "after_firing"), ("sqlite", "after_fired")],
    indirect=["site"],
)
def test_a_worker_killed_while_a_trigger_fires_starts_its_turn_once(site: Site, start: Start, point: str) -> None:
    """T-26. Between the claim and the turn, between the turn and the history, and after the commit of all of them."""
    trigger = due_trigger(site)
    worker = start(**killed_at(site, point))
    assert worker.process.wait() == -signal.SIGKILL
    committed = point == "after_fired"
    trigger.refresh_from_db()
    assert (trigger.slot is None, Firing.objects.count(), Prompt.objects.count()) == (committed, committed, committed)
    start()
    prompt = wait_for(lambda: Prompt.objects.filter(trigger=trigger).first(), "the turn", site)
    assert prompt is not None
    assert ended(site, prompt).state == "completed"
    firing = Firing.objects.get()
    assert (firing.state, firing.prompt_id, Prompt.objects.count()) == ("started", prompt.pk, 1)
