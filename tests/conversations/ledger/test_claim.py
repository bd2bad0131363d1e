"""Claims: which worker may run a prompt, for how long, and how many workers were lost."""

import pytest
from django.contrib.auth.models import User

from agents.engine.ledger import Step
from conversations.database.sql import database_time
from conversations.ledger.claims import STRIKES, any_held, claim, claimable, release, renew, still_claimed
from conversations.ledger.journal import append
from conversations.models import KillSwitch, Prompt
from conversations.models import Step as Row
from conversations.prompts.start import start_conversation, start_prompt
from tests.conversations.recorded import (
    LEASE,
    ONE_GATE,
    Site,
    at_once,
    meddle,
    place,
    record,
    said,
    taken,
)  # fmt: skip

pytestmark = pytest.mark.django_db


@pytest.fixture
def prompt(ann: User) -> Prompt:
    return start_prompt(start_conversation(ann), ann, "Go.")


def pass_by(prompt: Prompt, seconds: float) -> None:
    """So much time passes for the worker of this prompt."""
    meddle(
        "UPDATE conversations_prompt SET lease_until = lease_until - %s, claimed_at = claimed_at - %s WHERE id = %s",
        [seconds, seconds, prompt.pk],
    )


def test_a_claim_is_a_lease_a_fence_and_the_slot(prompt: Prompt) -> None:
    held, now = taken(prompt), database_time()
    prompt.refresh_from_db()
    assert (held.fence, held.strikes, prompt.fence, prompt.worker) == (1, 0, 1, "worker:test")
    assert prompt.lease_until == pytest.approx(now + LEASE, abs=5)
    assert prompt.claimed_at == pytest.approx(now, abs=5)
    assert prompt.conversation.active_prompt == prompt
    assert any_held(Prompt.objects.filter(pk=prompt.pk))


def test_nobody_takes_what_is_held(prompt: Prompt) -> None:
    taken(prompt)
    assert claimable(10) == []
    assert claim(prompt.pk, "worker:other", LEASE) is None
    prompt.refresh_from_db()
    assert (prompt.fence, prompt.worker) == (1, "worker:test")


@pytest.mark.django_db(transaction=True)
def test_one_of_ten_workers_gets_it(prompt: Prompt) -> None:
    """T-24, CP31: the same wake-up delivered ten times."""
    came_to = at_once(*[lambda n=n: claim(prompt.pk, f"worker:{n}", LEASE) for n in range(10)])
    assert [one for one in came_to if isinstance(one, Exception)] == []
    assert len([one for one in came_to if one]) == 1
    prompt.refresh_from_db()
    assert prompt.fence == 1


def test_a_released_prompt_is_claimed_at_once_and_is_no_strike(prompt: Prompt) -> None:
    held = taken(prompt)
    pass_by(prompt, 7)
    release(held)
    prompt.refresh_from_db()
    assert prompt.running_seconds == pytest.approx(7, abs=2)
    assert claimable(10) == [prompt.pk]
    again = taken(prompt)
    assert (again.fence, again.strikes) == (2, 0)


def test_releasing_twice_or_late_changes_nothing(prompt: Prompt) -> None:
    held = taken(prompt)
    release(held)
    second = taken(prompt)
    before = Prompt.objects.values().get(pk=prompt.pk)
    release(held)
    assert Prompt.objects.values().get(pk=prompt.pk) == before
    assert renew([second], LEASE) == {prompt.pk}


def test_a_lost_worker_counts_up_to_its_last_renewal_and_is_a_strike(prompt: Prompt) -> None:
    """Claimed, renewed after 12 s, then lost; found after its lease."""
    held = taken(prompt)
    pass_by(prompt, 12)
    renew([held], LEASE)
    pass_by(prompt, LEASE + 9)
    assert claimable(10) == [prompt.pk]
    again = taken(prompt)
    prompt.refresh_from_db()
    assert (again.fence, again.strikes) == (2, 1)
    assert prompt.running_seconds == pytest.approx(12, abs=2)


def test_strikes_add_up_until_there_is_progress(prompt: Prompt) -> None:
    for strikes in range(3):
        held = taken(prompt)
        assert held.strikes == strikes
        at = place(prompt)
        append(at, record(prompt, at, Step("worker:1", "action_start", {"attempt": held.fence})), fence=held.fence)
        pass_by(prompt, LEASE + 1)
    held, at = taken(prompt), place(prompt)
    assert held.strikes == 3
    append(at, record(prompt, at, said()), fence=held.fence)
    pass_by(prompt, LEASE + 1)
    assert taken(prompt).strikes == 1


def test_a_step_that_kills_every_worker_ends_its_turn(site: Site, ann: User) -> None:
    """After six lost workers without progress the turn is given up, visibly."""
    prompt = site.starts(ann, *ONE_GATE)
    for _ in range(STRIKES):
        taken(prompt)
        pass_by(prompt, LEASE + 1)
    site.works()
    prompt.refresh_from_db()
    assert (prompt.state, prompt.stop_reason) == ("failed", "crash_loop")
    assert "6 workers in a row were lost" in Row.objects.get(type="text").content["text"]


def test_only_a_lease_of_the_same_claim_is_renewed(ann: User) -> None:
    """Also one that ran out, for example while the database was away: the fence shows that nobody took it (I2)."""
    lives, lapsed, given_back, lost = held = [
        taken(start_prompt(start_conversation(ann), ann, "Go.")) for _ in range(4)
    ]
    for late in (lapsed, lost):
        pass_by(Prompt.objects.get(pk=late.prompt), LEASE + 1)
    release(given_back)
    taken(Prompt.objects.get(pk=lost.prompt))
    assert renew(held, LEASE) == {lives.prompt, lapsed.prompt}
    assert still_claimed(held) == {lives.prompt, lapsed.prompt}
    assert not claimable(10)[1:]
    assert renew([], LEASE) == still_claimed([]) == set()


def test_a_lease_that_ran_out_is_not_renewed_while_nothing_may_run(ann: User) -> None:
    """The kill switch ends such turns without their workers (C25)."""
    lives, lapsed = held = [taken(start_prompt(start_conversation(ann), ann, "Go.")) for _ in range(2)]
    pass_by(Prompt.objects.get(pk=lapsed.prompt), LEASE + 1)
    KillSwitch.objects.create(on_by="system", reason="Stop.")
    assert renew(held, LEASE) == {lives.prompt}


def test_leases_of_thousands_are_renewed_by_one_statement(prompt: Prompt) -> None:
    """SQLite refuses an expression of more than a thousand terms."""
    held = taken(prompt)
    others = [type(held)(1, 10**6 + n, 1, 0) for n in range(3000)]
    assert renew([*others, held], LEASE) == {prompt.pk}


def test_a_turn_that_waits_holds_nothing_and_is_not_claimable(site: Site, ann: User) -> None:
    """I7: no worker, any length of time."""
    prompt = site.runs(ann, *ONE_GATE)
    assert (prompt.state, prompt.lease_until) == ("waiting_for_approval", 0)
    assert claimable(10) == []
    assert claim(prompt.pk, "worker:other", LEASE) is None
    prompt.refresh_from_db()
    assert prompt.fence == 1


def test_a_turn_that_ended_is_not_claimed_and_takes_no_slot(site: Site, ann: User) -> None:
    prompt = site.ended(ann, *ONE_GATE)
    assert claim(prompt.pk, "worker:other", LEASE) is None
    prompt.conversation.refresh_from_db()
    assert prompt.conversation.active_prompt is None
