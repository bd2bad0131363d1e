"""A turn that takes its worker down is given up alone: what was lost beside it is not."""

from __future__ import annotations

import math

import pytest
from django.contrib.auth.models import User

from conversations.ledger.claims import STRIKES, Claim, claim, claimable, next_lapse, release
from conversations.ledger.journal import append
from conversations.models import Prompt
from conversations.prompts.start import start_conversation, start_prompt
from tests.conversations.recorded import LEASE, meddle, place, record, said, taken

pytestmark = pytest.mark.django_db


@pytest.fixture
def prompts(ann: User) -> list[Prompt]:
    """Four turns that run beside one another."""
    return [start_prompt(start_conversation(ann), ann, "Go.") for _ in range(4)]


def crash(*prompts: Prompt) -> None:
    """The worker that holds them is lost, and their leases run out together."""
    for prompt in prompts:
        changed = "UPDATE conversations_prompt SET lease_until = 1 WHERE id = %s AND lease_until > 0"
        assert meddle(changed, [prompt.pk]) == 1


def suspected(prompts: list[Prompt]) -> None:
    """Four times a worker was lost with all of them."""
    for strikes in range(4):
        assert [taken(prompt).strikes for prompt in prompts] == [strikes] * 4
        crash(*prompts)


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


def test_suspects_are_tried_in_groups_that_become_smaller(ann: User) -> None:
    """A busy machine that loses workers by chance keeps few of them waiting; a group was lost as often (I2)."""
    prompts = [start_prompt(start_conversation(ann), ann, "Go.") for _ in range(10)]
    for strikes in range(2):
        assert [taken(prompt).strikes for prompt in prompts] == [strikes] * 10
        crash(*prompts)

    def tried() -> list[Claim]:
        return [held for prompt in claimable(20) if (held := claim(prompt, "worker:test", LEASE))]

    def of(held: list[Claim]) -> list[Prompt]:
        return list(Prompt.objects.filter(pk__in=[each.prompt for each in held]))

    first = tried()
    assert [(each.prompt, each.strikes) for each in first] == [(pk, 2) for pk in ids(prompts[:8])]
    crash(*of(first))
    second = tried()
    assert [(each.prompt, each.strikes) for each in second] == [(pk, 2) for pk in ids(prompts[8:])]
    for each in second:
        speaks(each)
    third = tried()
    assert [(each.prompt, each.strikes) for each in third] == [(pk, 3) for pk in ids(prompts[:4])]
    speaks(third[0])
    fourth = tried()  # in the place of the one that is no suspect any more
    assert [(each.prompt, each.strikes) for each in fourth] == [(prompts[4].pk, 3)]
    crash(*of([*third[1:], *fourth]))
    for each in (fifth := tried()):
        assert each.strikes == 3  # those that were lost less often are first
        speaks(each)
    assert {each.prompt for each in fifth} == set(ids(prompts[5:8]))
    sixth = tried()
    assert [each.strikes for each in sixth] == [4]


def test_in_the_end_one_suspect_at_a_time_is_tried(prompts: list[Prompt], ann: User) -> None:
    """Also by a worker that found several of them at one look. Others run beside it (I2)."""
    suspected(prompts)
    assert claimable(10) == ids(prompts)
    assert taken(prompts[0]).strikes == 4
    assert claimable(10) == []
    assert [claim(prompt.pk, "worker:other", LEASE) for prompt in prompts[1:]] == [None] * 3
    fresh = start_prompt(start_conversation(ann), ann, "Go.")
    assert claimable(10) == [fresh.pk]
    assert taken(fresh).strikes == 0
    refused = Prompt.objects.filter(pk__in=ids(prompts[1:]))
    assert list(refused.values_list("strikes", "fence")) == [(3, 4)] * 3


def test_the_suspect_that_was_tried_least_is_next(prompts: list[Prompt], ann: User) -> None:
    """Kills by chance spread over the suspects; work that arrives meanwhile keeps none of them back."""
    fresh = [start_prompt(start_conversation(ann), ann, "Go.").pk for _ in range(2)]
    suspected(prompts)
    for losses in range(2):
        for tried in prompts:
            first = claimable(1)
            assert first == [tried.pk]
            assert taken(tried).strikes == 4 + losses
            crash(tried)
    assert claimable(10)[:4] == ids(prompts)
    assert claimable(10)[4:] == fresh


def test_progress_lets_the_next_suspect_be_tried(prompts: list[Prompt]) -> None:
    """And the one that had it may be lost again as often as any."""
    suspected(prompts)
    speaks(taken(prompts[0]))
    assert claimable(10) == ids(prompts[1:])
    assert taken(prompts[1]).strikes == 4
    crash(prompts[0])
    assert claimable(10) == [prompts[0].pk]
    assert taken(prompts[0]).strikes == 1


def test_a_suspect_that_is_given_back_lets_another_be_tried(prompts: list[Prompt]) -> None:
    """By a worker that was told to stop: it is no strike, and what is given back is still a suspect."""
    suspected(prompts)
    release(taken(prompts[0]))
    assert claimable(10) == ids(prompts)
    assert taken(prompts[1]).strikes == 4
    assert claim(prompts[0].pk, "worker:other", LEASE) is None


def test_giving_up_waits_for_no_suspect(prompts: list[Prompt]) -> None:
    """It only has to be recorded (I2)."""
    suspected(prompts)
    meddle("UPDATE conversations_prompt SET strikes = %s WHERE id = %s", [STRIKES - 1, prompts[0].pk])
    assert taken(prompts[1]).strikes == 4
    assert claimable(10) == [prompts[0].pk]
    assert taken(prompts[0]).strikes == STRIKES


@pytest.mark.parametrize("nth", range(4))
def test_one_turn_that_kills_its_worker_costs_the_others_nothing(prompts: list[Prompt], nth: int) -> None:
    """The others wait for a slow model: none of them has progress before the next crash (I2)."""
    poison, seen = prompts[nth].pk, list[Claim]()
    while (poison, STRIKES) not in [(each.prompt, each.strikes) for each in seen]:
        held = [each for prompt in claimable(10) if (each := claim(prompt, "worker:test", LEASE))]
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
