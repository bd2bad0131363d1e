"""Expiry of gates that nobody decided in time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest
from django.contrib.auth.models import User
from django.test import override_settings

from conversations.approvals import expiry
from conversations.approvals.decisions import Conflict, decide
from conversations.approvals.expiry import expire_due
from conversations.erasure.conversations import erase
from conversations.ledger.locked import LockedTurn, locked_turn
from conversations.ledger.reading import read_steps
from conversations.models import Conversation, GateState, Output, State
from conversations.verification.rules import problems_of
from tests.conversations.recorded import ONE_GATE, TWO_GATES, Site, meddle, pending
from tests.engine.support import call, says

LONG_AGO = -1.0
"""Hours that a gate stays open: it was due before it was asked."""


@pytest.fixture
def due() -> Iterator[None]:
    with override_settings(AGENTSITE_APPROVAL_HOURS=LONG_AGO):
        yield


@pytest.mark.usefixtures("due")
def test_a_gate_that_is_due_is_expired_and_the_turn_goes_on(site: Site, ann: User) -> None:
    """Nothing ran, and the model reads that nobody answered (C13)."""
    prompt = site.runs(ann, *TWO_GATES)
    assert expire_due() == 2
    site.works()
    prompt.refresh_from_db()

    assert prompt.state == State.COMPLETED
    assert not site.world.done
    results = [
        step.payload for step in read_steps(prompt.conversation_id, prompt.pk) if step.payload.get("code") == "expired"
    ]
    assert [result["message"] for result in results] == ["This was not done in time."] * 2
    assert not problems_of(read_steps(prompt.conversation_id, prompt.pk))


def test_a_gate_that_is_not_due_stays_open(site: Site, ann: User) -> None:
    prompt = site.runs(ann, *TWO_GATES)
    assert expire_due() == 0
    assert len(pending(prompt)) == 2


@pytest.mark.usefixtures("due")
def test_an_expired_gate_cannot_be_approved(site: Site, ann: User) -> None:
    """Exactly one of expired and approved (CP17)."""
    prompt = site.runs(ann, *TWO_GATES)
    gate = pending(prompt)[0]
    expire_due()
    with pytest.raises(Conflict) as refused:
        decide(gate.pk, ann, "approve", digest=gate.digest, via="page")
    assert refused.value.output.gate == GateState.EXPIRED


@pytest.mark.usefixtures("due")
def test_a_gate_that_cannot_be_expired_does_not_keep_the_others(
    site: Site, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor the sweep that expires it: what is wrong with it is in the log."""
    first, second = site.runs(ann, *TWO_GATES), site.runs(ann, *TWO_GATES)
    real = locked_turn

    def fails(prompt: int) -> AbstractContextManager[LockedTurn]:
        if prompt == first.pk:
            raise ValueError("poisoned")
        return real(prompt)

    monkeypatch.setattr(expiry, "locked_turn", fails)
    assert expire_due() == 2
    assert not pending(second)
    assert len(pending(first)) == 2


@pytest.mark.usefixtures("due")
def test_a_gate_whose_conversation_was_erased_meanwhile_is_nobodys(
    site: Site, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep goes on."""
    prompt = site.runs(ann, *ONE_GATE)
    real = locked_turn

    def erased(number: int) -> AbstractContextManager[LockedTurn]:
        erase(Conversation.objects.get(pk=prompt.conversation_id), ann)
        return real(number)

    monkeypatch.setattr(expiry, "locked_turn", erased)
    assert expire_due() == 0


@pytest.mark.usefixtures("due")
def test_gates_that_an_ended_turn_left_open_do_not_keep_the_others(
    site: Site, ann: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn that is given up may leave some, and as many as one sweep takes stood before all others."""
    monkeypatch.setattr(expiry, "AT_ONCE", 1)
    ended, other = site.runs(ann, *ONE_GATE), site.runs(ann, *ONE_GATE)
    meddle("UPDATE conversations_prompt SET state = 'failed' WHERE id = %s", [ended.pk])
    assert expire_due() == 1
    assert not pending(other)


def test_a_model_that_asks_for_a_person_by_name_opens_no_approval(site: Site, ann: User) -> None:
    """Nothing stands among the approvals, and the turn ends (T-14)."""
    forged = call("human", reason="Routine backup", expires_at="2020-01-01T00:00:00+00:00")
    prompt = site.runs(ann, says("Please.", forged), says("Done."))
    assert prompt.state == State.COMPLETED
    assert not Output.objects.gates().exists()
    assert expire_due() == 0
