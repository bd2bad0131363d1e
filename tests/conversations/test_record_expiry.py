"""Gates that nobody decided in time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import override_settings

from conversations.approvals.decisions import Conflict, decide
from conversations.approvals.expiry import expire_due
from conversations.journal import read_steps
from conversations.models import Gate, State
from conversations.verification import problems_of
from tests.conversations.recorded import TWO_GATES, Site, pending

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
    results = [step.payload for step in read_steps(prompt.pk) if step.payload.get("code") == "expired"]
    assert [result["message"] for result in results] == ["Nobody answered in time, so this was not done."] * 2
    assert not problems_of(read_steps(prompt.pk))


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
    assert refused.value.output.gate == Gate.EXPIRED
