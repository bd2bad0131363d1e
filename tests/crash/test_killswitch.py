"""The kill switch with real workers: running turns stop within seconds, and waiting ones go on later (C25)."""

from __future__ import annotations

import time

import pytest

from conversations.models import KillSwitch, Prompt, State, Step
from conversations.prompts.killswitch import turn_off, turn_on
from conversations.verification.stored import verify
from tests.crash.acting import both
from tests.crash.processes import drain_of, kill_all, pause, running, wait_for
from tests.crash.site import Site
from tests.crash.turns import LONG_COMMAND
from tests.crash.workers import Whole

pytestmark = [pytest.mark.crash, both]
MOST_SECONDS = 10.0


def state(prompt: Prompt) -> str:
    return Prompt.objects.get(pk=prompt.pk).state


def sleeping(site: Site) -> Prompt:
    """A turn whose command runs, after somebody approved it."""
    prompt = site.say("wait")
    site.decide(wait_for(lambda: site.pending(prompt), "the gate", site)[0], "approve")
    wait_for(lambda: running(LONG_COMMAND), "the command", site)
    return prompt


def test_what_runs_is_dead_within_ten_seconds_and_what_waits_goes_on(site: Site) -> None:
    worker = Whole(site)
    try:
        waits = site.say("count")
        gate = wait_for(lambda: site.pending(waits), "the gate", site)[0]
        command, slow = sleeping(site), site.say("take for ever")
        wait_for(lambda: site.effects()["1/0 began"], "the slow call", site)
        began = time.monotonic()
        turn_on(site.person(), "A test of it.")
        wait_for(lambda: {state(command), state(slow)} == {State.CANCELLED}, "the end of both turns", site)
        wait_for(lambda: not running(LONG_COMMAND), "the end of the command", site)
        assert time.monotonic() - began < MOST_SECONDS

        site.decide(gate, "approve")  # which wakes nobody
        sweep = time.monotonic() + 2
        wait_for(lambda: time.monotonic() > sweep, "some sweeps", site)
        assert (state(waits), site.effects()["1/0"]) == (State.RUNNING, 0)
        turn_off(site.person())
        wait_for(lambda: state(waits) == State.COMPLETED, "the end of the turn that waited", site)
        assert site.effects() == {"1/0 began": 1, "1/0": 1}
    finally:
        worker.kill()
        kill_all(site)
    for prompt in (waits, command, slow):
        assert verify(prompt.conversation_id).problems == []


def test_it_holds_where_who_turned_it_on_died_before_it_stopped_anything(site: Site) -> None:
    """The row alone is enough: the drain that holds a turn finds it, and the sweep what a lost drain left."""
    worker = Whole(site)
    try:
        held, lost = sleeping(site), None
        KillSwitch.objects.create(on_by="system", reason="The process died here.")
        wait_for(lambda: state(held) == State.CANCELLED, "the end of the turn", site)
        assert not running(LONG_COMMAND)
        turn_off(None)
        lost = site.say("take for ever")
        wait_for(lambda: site.effects()["1/0 began"], "the slow call", site)
        pause(site, drain_of(lost))
        began = time.monotonic()
        KillSwitch.objects.create(on_by="system", reason="The process died here.")
        wait_for(lambda: state(lost) == State.CANCELLED, "the end of the turn that nobody holds", site)
        assert time.monotonic() - began < MOST_SECONDS
        assert Step.objects.filter(prompt=lost, type="cancel").count() == 1
    finally:
        worker.kill()
        kill_all(site)
    assert verify(lost.conversation_id).problems == []
