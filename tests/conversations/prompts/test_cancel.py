"""Stopping a turn: one end, nothing starts later, everything open is closed."""

import pytest
from django.contrib.auth.models import User

from agents.engine.ledger import Step
from conversations.ledger.journal import append
from conversations.models import Output, Prompt, State
from conversations.models import Step as Row
from conversations.prompts.start import cancel_prompt, start_conversation, start_prompt
from conversations.verification.stored import verify
from tests.conversations.recorded import (
    LEASE,
    ONE_GATE,
    TWO_GATES,
    Site,
    at_once,
    meddle,
    pending,
    place,
    record,
    taken,
)  # fmt: skip
from tests.engine.support import call, says

pytestmark = pytest.mark.django_db


def stopped(prompt: Prompt) -> None:
    """It ended once, as stopped; nothing of it is open, and the slot is free."""
    prompt.refresh_from_db()
    assert (prompt.state, prompt.stop_reason, prompt.lease_until) == (State.CANCELLED, "cancelled", 0)
    assert prompt.conversation.active_prompt is None
    assert not pending(prompt)
    assert not Output.objects.filter(prompt=prompt, result__in=["running", "pending", "deferred"]).exists()
    assert Row.objects.filter(prompt=prompt, path="", type="action_result").count() == 1
    assert verify(prompt.conversation_id).problems == []


def test_a_queued_turn_ends_at_once(ann: User) -> None:
    prompt = start_prompt(start_conversation(ann), ann, "Go.")
    assert cancel_prompt(prompt.pk, ann, "Wrong window.").state == State.CANCELLED
    stopped(prompt)
    assert Row.objects.get(type="cancel").content == {"reason": "Wrong window."}
    assert start_prompt(prompt.conversation, ann, "Again.").number == 2


def test_a_turn_that_waits_ends_at_once_and_its_gates_are_closed(ann: User, site: Site) -> None:
    prompt = site.runs(ann, *TWO_GATES)
    cancel_prompt(prompt.pk, ann)
    stopped(prompt)
    assert {gate.gate for gate in Output.objects.gates()} == {"cancelled"}


def test_a_turn_that_is_claimed_and_has_not_begun_ends_at_once(ann: User, site: Site) -> None:
    """Its worker finds the end before its first record, and writes nothing."""
    prompt = site.starts(ann, says("Unused."))
    held, at = taken(prompt), place(prompt)
    cancel_prompt(prompt.pk, ann)
    stopped(prompt)
    assert held.fence == 1
    assert at.seq == 1


def test_a_turn_that_runs_is_ended_by_its_worker(ann: User, site: Site) -> None:
    """CP28: the worker sees it under the lock of its next record; no tool starts after it."""
    prompt = site.starts(ann, says("One.", call("report.write", name="a"), call("report.write", name="b")), says("No."))

    def stop(_: object) -> None:
        cancel_prompt(prompt.pk, ann)
        prompt.refresh_from_db()
        assert prompt.state == State.RUNNING, "a worker holds it: only that one can end what runs"

    site.world.at["report.write"] = lambda call: site.aside(stop, call)
    site.works()
    stopped(prompt)
    assert site.world.done == [("report.write", "a")]


def test_a_turn_whose_worker_is_lost_is_ended_by_the_next(ann: User, site: Site) -> None:
    """What was stopped in between starts nothing more when it is taken over."""
    prompt = site.starts(ann, *ONE_GATE)
    held, at = taken(prompt), place(prompt)
    root = Step("worker:test", "action_start", {"attempt": 1, "fence": held.fence})
    append(at, record(prompt, at, root), fence=held.fence)
    cancel_prompt(prompt.pk, ann)
    prompt.refresh_from_db()
    assert prompt.state == State.RUNNING
    meddle("UPDATE conversations_prompt SET lease_until = lease_until - %s", [LEASE + 1])
    site.works()
    stopped(prompt)
    assert not Row.objects.filter(path="1").exists(), "the model was not asked"


def test_an_approved_turn_that_nobody_holds_ends_at_once(ann: User, site: Site) -> None:
    prompt = site.runs(ann, *ONE_GATE)
    site.approves(prompt, ann)
    cancel_prompt(prompt.pk, ann)
    stopped(prompt)
    site.works()
    assert site.world.done == []


def test_stopping_twice_or_after_the_end_changes_nothing(ann: User, site: Site) -> None:
    prompt = site.ended(ann, *ONE_GATE)
    before = list(Row.objects.values())
    assert cancel_prompt(prompt.pk, ann).state == State.COMPLETED
    assert list(Row.objects.values()) == before
    other = site.runs(ann, *ONE_GATE)
    for _ in range(2):
        cancel_prompt(other.pk, ann)
    stopped(other)
    assert Row.objects.filter(type="cancel").count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_ten_at_once_one_stops_it(ann: User, site: Site) -> None:
    prompt = site.runs(ann, *ONE_GATE)
    came_to = at_once(*[lambda: cancel_prompt(prompt.pk, ann).state] * 10)
    assert came_to == [State.CANCELLED] * 10
    stopped(prompt)
    assert Row.objects.filter(type="cancel").count() == 1
