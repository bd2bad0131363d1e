"""A turn that takes its worker down is given up alone: what was lost beside it is not."""

from __future__ import annotations

import math
from functools import partial

import pytest
from django.contrib.auth.models import User
from pytest_django.fixtures import Settings

from conversations.ledger.claims import (
    ALONE,
    PLACES,
    PROVEN_SECONDS,
    STRIKES,
    SUSPECT,
    Claim,
    Share,
    claim,
    claimable,
    next_lapse,
    release,
)
from conversations.ledger.journal import append
from conversations.models import Prompt
from conversations.prompts.start import start_conversation, start_prompt
from tests.conversations.recorded import LEASE, at_once, meddle, place, record, said, taken

pytestmark = pytest.mark.django_db


def started(ann: User, turns: int) -> list[Prompt]:
    return [start_prompt(start_conversation(ann), ann, "Go.") for _ in range(turns)]


@pytest.fixture
def prompts(ann: User) -> list[Prompt]:
    """Four turns that run beside one another."""
    return started(ann, 4)


@pytest.fixture
def many(ann: User, settings: Settings) -> list[Prompt]:
    """Two more than are tried at once."""
    settings.AGENTSITE_PROMPTS_AT_ONCE = PLACES + 4
    return started(ann, PLACES + 2)


def crash(*prompts: Prompt) -> None:
    """The worker that holds them is lost, and their leases run out together."""
    for prompt in prompts:
        changed = "UPDATE conversations_prompt SET lease_until = 1 WHERE id = %s AND lease_until > 0"
        assert meddle(changed, [prompt.pk]) == 1


def lost(prompts: list[Prompt], times: int) -> None:
    """So often a worker was lost with all of them."""
    for strikes in range(times):
        assert [taken(prompt).strikes for prompt in prompts] == [strikes] * len(prompts)
        crash(*prompts)


def offered() -> list[int]:
    """What `taken` could take."""
    return claimable(20, "worker:test")


def ids(prompts: list[Prompt]) -> list[int]:
    return [prompt.pk for prompt in prompts]


def speaks(held: Claim) -> None:
    """The turn has progress."""
    prompt = Prompt.objects.get(pk=held.prompt)
    at = place(prompt)
    append(at, record(prompt, at, said()), fence=held.fence)


def test_first_tries_after_a_loss_are_made_side_by_side(prompts: list[Prompt]) -> None:
    """A deploy that was cut off holds nobody up (I2)."""
    for prompt in prompts:
        taken(prompt)
    crash(*prompts)
    assert claimable(10) == ids(prompts)
    assert [taken(prompt).strikes for prompt in prompts] == [1] * 4


def test_few_suspects_at_a_time_are_tried(many: list[Prompt], ann: User) -> None:
    """Also by a worker that found more of them at one look. Others run beside them (I2)."""
    lost(many, SUSPECT)
    assert offered() == ids(many)
    assert [taken(prompt).strikes for prompt in many[:PLACES]] == [SUSPECT] * PLACES
    assert offered() == []
    assert [claim(prompt.pk, "worker:test", LEASE) for prompt in many[PLACES:]] == [None] * 2
    (fresh,) = started(ann, 1)
    assert offered() == [fresh.pk]
    assert taken(fresh).strikes == 0
    refused = Prompt.objects.filter(pk__in=ids(many[PLACES:]))
    assert list(refused.values_list("strikes", "fence")) == [(SUSPECT - 1, SUSPECT)] * 2


def test_other_workers_try_the_rest(many: list[Prompt]) -> None:
    """Whoever takes one worker down strikes nothing that another holds; nor does a lost one keep its places."""
    lost(many, SUSPECT)
    for prompt in many[:PLACES]:
        taken(prompt)
    assert claimable(20, "worker:other") == claimable(20) == ids(many[PLACES:])
    assert [claim(prompt.pk, "worker:other", LEASE) is None for prompt in many[PLACES:]] == [False] * 2


def test_the_drains_of_a_host_try_suspects_together(many: list[Prompt]) -> None:
    """Whoever takes the memory of a host takes all of them down. What other hosts hold does not count."""
    lost(many, SUSPECT)
    for prompt in many[: PLACES - 1]:
        assert claim(prompt.pk, "worker:a_b/1.x", LEASE)
    assert len(claimable(20, "worker:a_b/2.x")) == 3
    assert claim(many[PLACES - 1].pk, "worker:a_b/2.x", LEASE)
    assert claimable(20, "worker:a_b/3.x") == []
    assert claim(many[PLACES].pk, "worker:a_b/3.x", LEASE) is None
    assert claimable(20, "worker:a-b/1.x") == claimable(20) == ids(many[PLACES:])
    assert claim(many[PLACES].pk, "worker:a-b/1.x", LEASE)


@pytest.mark.django_db(transaction=True)
def test_drains_of_a_host_that_claim_at_the_same_moment_take_one_that_is_tried_alone(prompts: list[Prompt]) -> None:
    lost(prompts, ALONE)
    for _ in range(5):
        tried = at_once(*[partial(claim, prompt.pk, f"worker:host/{prompt.pk}.x", LEASE) for prompt in prompts])
        assert len([one for one in tried if isinstance(one, Claim)]) == 1, tried
        meddle("UPDATE conversations_prompt SET lease_until = 0, strikes = %s", [ALONE])


def test_suspects_are_for_every_drain_of_a_host(prompts: list[Prompt], ann: User) -> None:
    """So that the one that was tried least is next, whatever its number."""
    (fresh,) = started(ann, 1)
    lost(prompts, ALONE)
    own = fresh.pk % 2
    assert claimable(20, "worker:a/1.x", Share(own, 2)) == [*ids(prompts), fresh.pk]
    assert claimable(20, "worker:a/2.x", Share(1 - own, 2)) == ids(prompts)


def test_suspects_that_run_for_long_keep_the_others_back_no_longer(many: list[Prompt]) -> None:
    """Their steps may take minutes. One that is tried alone stays alone, however long."""
    lost(many, SUSPECT)
    for prompt in many[:PLACES]:
        taken(prompt)
    earlier = "UPDATE conversations_prompt SET claimed_at = claimed_at - %s WHERE id = %s"
    meddle(earlier, [PROVEN_SECONDS, many[0].pk])
    assert offered() == ids(many[PLACES:])
    assert taken(many[PLACES]).strikes == SUSPECT
    assert offered() == []
    meddle("UPDATE conversations_prompt SET strikes = %s WHERE id = %s", [ALONE, many[0].pk])
    meddle("UPDATE conversations_prompt SET claimed_at = claimed_at - %s", [PROVEN_SECONDS])
    assert offered() == []


def test_who_was_lost_even_so_is_tried_alone(prompts: list[Prompt], ann: User) -> None:
    """With no other suspect beside it on its host: the next loss is its own, or chance."""
    lost(prompts, ALONE)
    assert offered() == ids(prompts)
    assert taken(prompts[0]).strikes == ALONE
    assert offered() == []
    assert [claim(prompt.pk, "worker:test", LEASE) for prompt in prompts[1:]] == [None] * 3
    (fresh,) = started(ann, 1)
    assert offered() == [fresh.pk]


def test_no_one_joins_whom_a_worker_tries_alone_and_none_is_joined(prompts: list[Prompt], ann: User) -> None:
    """Neither a suspect of the first kind the one that is alone, nor that one any of the others."""
    lost(prompts[:1], ALONE)
    lost(prompts[1:], SUSPECT)
    assert offered() == ids([*prompts[1:], prompts[0]])
    taken(prompts[1])
    assert offered() == ids(prompts[2:])
    speaks(Claim(prompts[1].conversation_id, prompts[1].pk, SUSPECT + 1, SUSPECT))
    taken(prompts[0])
    assert offered() == []


def test_the_suspect_that_was_tried_least_is_next(prompts: list[Prompt], ann: User) -> None:
    """Kills by chance spread over the suspects; work that arrives meanwhile keeps none of them back."""
    fresh = ids(started(ann, 2))
    lost(prompts, ALONE)
    for losses in range(2):
        for tried in prompts:
            assert offered()[0] == tried.pk
            assert taken(tried).strikes == ALONE + losses
            crash(tried)
    assert offered() == ids(prompts) + fresh


def test_progress_lets_the_next_suspect_be_tried(prompts: list[Prompt]) -> None:
    """And the one that had it may be lost again as often as any."""
    lost(prompts, ALONE)
    speaks(taken(prompts[0]))
    assert offered() == ids(prompts[1:])
    assert taken(prompts[1]).strikes == ALONE
    crash(prompts[0])
    assert offered() == [prompts[0].pk]
    assert taken(prompts[0]).strikes == 1


def test_a_suspect_that_is_given_back_lets_another_be_tried(prompts: list[Prompt]) -> None:
    """By a worker that was told to stop: it is no strike, and what is given back is still a suspect."""
    lost(prompts, ALONE)
    release(taken(prompts[0]))
    assert offered() == ids(prompts)
    assert taken(prompts[1]).strikes == ALONE
    assert claim(prompts[0].pk, "worker:test", LEASE) is None


def test_giving_up_waits_for_no_suspect(prompts: list[Prompt]) -> None:
    """It only has to be recorded (I2)."""
    lost(prompts, ALONE)
    meddle("UPDATE conversations_prompt SET strikes = %s WHERE id = %s", [STRIKES - 1, prompts[0].pk])
    assert taken(prompts[1]).strikes == ALONE
    assert offered() == [prompts[0].pk]
    assert taken(prompts[0]).strikes == STRIKES


@pytest.mark.parametrize("nth", range(4))
def test_one_turn_that_kills_its_worker_costs_the_others_nothing(prompts: list[Prompt], nth: int) -> None:
    """The others wait for a slow model: none of them has progress before the next crash (I2)."""
    poison, seen = prompts[nth].pk, list[Claim]()
    while (poison, STRIKES) not in [(each.prompt, each.strikes) for each in seen]:
        held = [each for prompt in offered() if (each := claim(prompt, "worker:test", LEASE))]
        seen += held
        if poison in [each.prompt for each in held]:
            crash(*Prompt.objects.filter(lease_until__gt=1))
        else:
            for each in held:
                speaks(each)
    assert {each.prompt for each in seen if each.strikes == STRIKES} == {poison}


def test_the_first_lease_that_runs_out_is_foretold(prompts: list[Prompt]) -> None:
    """So that a worker's parent looks then, and not up to a sweep later (I2)."""
    assert next_lapse() == math.inf
    taken(prompts[0])
    meddle("UPDATE conversations_prompt SET lease_until = lease_until - 7 WHERE id = %s", [prompts[0].pk])
    taken(prompts[1])
    assert next_lapse() == pytest.approx(LEASE - 7, abs=2)
    crash(*prompts[:2])
    assert next_lapse() == math.inf
