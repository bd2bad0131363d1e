"""The thread that keeps a worker's leases, and the look at them before anything reaches outside."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import OperationalError
from pytest_django.fixtures import Settings

from conversations.ledger.claims import Claim
from conversations.models import Prompt, Step
from conversations.prompts.start import start_conversation, start_prompt
from conversations.worker.drafts import Drafts
from conversations.worker.leases import LeaseKeeper
from conversations.worker.runner import Runner
from tests.agentsite.processes import wait_for
from tests.conversations.recorded import LEASE, Site, in_this_thread, meddle, taken
from tests.engine.support import call, says


def keeper(lost: Callable[[list[Claim]], None] = lambda claims: None) -> LeaseKeeper:
    return LeaseKeeper(lost, lambda seconds: None)


@pytest.mark.django_db(transaction=True)
def test_a_held_lease_is_renewed_and_a_lost_one_is_told_of(ann: User, settings: Any) -> None:
    """T-22: by a thread of its own; what another worker has by now is not taken back (T-23)."""
    settings.AGENTSITE_RENEW_SECONDS = 0.02
    held = [taken(start_prompt(start_conversation(ann), ann, "Go.")) for _ in range(2)]
    kept, gone = held
    Prompt.objects.filter(pk=gone.prompt).update(fence=gone.fence + 1)
    before = Prompt.objects.get(pk=kept.prompt).lease_until
    told, heard = list[Claim](), threading.Event()

    def lost(claims: list[Claim]) -> None:
        told.extend(claims)
        heard.set()

    with keeper(lost) as leases:
        for claim in held:
            leases.hold(claim)
        assert heard.wait(timeout=30)
        leases.drop(gone)
    assert set(told) == {gone}
    assert Prompt.objects.get(pk=kept.prompt).lease_until > before


@pytest.mark.django_db(transaction=True)
def test_an_outage_that_outlasts_a_lease_loses_no_turn(ann: User, settings: Settings) -> None:
    """The keeper tries again soon, not when the next renewal is due, so that it comes before other workers (I2)."""
    settings.AGENTSITE_RENEW_SECONDS = 0.02
    held = taken(start_prompt(start_conversation(ann), ann, "Go."))
    failures = [OperationalError("away"), OperationalError("away")]
    lost: list[Claim] = []

    def keep_drain(_seconds: float) -> None:
        if not failures:
            return
        settings.AGENTSITE_RENEW_SECONDS = 600
        meddle("UPDATE conversations_prompt SET lease_until = 1 WHERE id = %s", [held.prompt])
        raise failures.pop()

    def renews() -> bool:
        return Prompt.objects.get(pk=held.prompt).lease_until > 1

    with LeaseKeeper(lost.extend, keep_drain) as leases:
        leases.hold(held)
        wait_for(lambda: not failures and renews())
    assert lost == []


@pytest.mark.django_db
def test_an_effect_may_begin_while_a_third_of_the_lease_is_left(ann: User, settings: Any) -> None:
    """T-23: by this process's own clock, which runs on while it stands still."""
    settings.AGENTSITE_LEASE_SECONDS = LEASE
    held, leases = taken(start_prompt(start_conversation(ann), ann, "Go.")), keeper()
    assert not leases.may_begin(held)
    for since, may in ((LEASE * 0.6, True), (LEASE * 0.7, False)):
        leases.hold(replace(held, at=time.monotonic() - since))
        assert leases.may_begin(held) is may


@pytest.mark.django_db
def test_a_worker_whose_lease_is_as_good_as_gone_begins_nothing(ann: User, site: Site) -> None:
    """CP19, T-23: the start is recorded, the effect is not begun, and the next worker asks what became of it."""
    site.starts(ann, says("One.", call("report.write", name="q")), says("Done."))
    held = taken(Prompt.objects.get())
    async_to_sync(Runner(held, "worker:test", in_this_thread, Drafts(in_this_thread), lambda: False))()
    assert site.world.done == []
    assert Step.objects.filter(path="1/0").order_by("seq").values_list("type", flat=True).last() == "action_start"
    assert not Step.objects.filter(path="1/0", type="action_result").exists()
