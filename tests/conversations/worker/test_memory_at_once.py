"""Memories that several change at the same moment: nobody gets an error, and nothing is kept twice or comes back."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User

from agents.models import Memory, SearchedWord, WordCount
from agents.plugins.memory import keeping
from conversations.erasure.people import erase_user
from tests.conversations.recorded import at_once
from tests.conversations.remembering import BIKE, TEA, keep, texts, version
from tests.conversations.support import person

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 8


@pytest.fixture
def ann(transactional_db: None) -> User:
    return person("ann")


@pytest.mark.parametrize(
    "other", [lambda ann, pk: keeping.change(ann, pk, BIKE, pinned=True), lambda ann, pk: keeping.pin(ann, pk, True)]
)
def test_one_that_is_changed_while_it_is_forgotten_is_gone(ann: User, other: Any) -> None:
    for _ in range(ROUNDS):
        (tea,) = keep(ann, TEA)
        changed, forgotten = at_once(partial(other, ann.pk, tea.pk), partial(keeping.forget, ann.pk, tea.pk))
        assert forgotten is True
        assert isinstance(changed, Memory | Memory.DoesNotExist)
        assert texts(ann) == set()
    assert not SearchedWord.objects.exists()


def test_the_same_text_is_saved_once_and_of_a_limit_no_more(ann: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Memory, "MOST", ROUNDS)
    for number in range(ROUNDS):
        same = at_once(*[partial(keeping.save, ann.pk, f"Fact {number}.")] * 2)
        assert sorted(each.new for each in same if isinstance(each, keeping.Saved)) == [False, True]
    assert version(ann) == ROUNDS
    Memory.objects.first().delete()  # type: ignore[union-attr] # there are some
    came_to = at_once(*(partial(keeping.save, ann.pk, f"Other {number}.") for number in range(4)))
    assert [isinstance(each, keeping.Saved) for each in came_to].count(True) == 1
    assert Memory.objects.count() == ROUNDS


def test_who_is_erased_while_memories_change_leaves_none(ann: User) -> None:
    chief = person("chief", is_superuser=True)
    for number in range(ROUNDS):
        kim = person(f"kim{number}")
        one, two = keep(kim, TEA, BIKE)
        came_to = at_once(
            partial(erase_user, kim, chief),
            partial(keeping.forget, kim.pk, one.pk),
            partial(keeping.switch, kim.pk, False),
            partial(keeping.change, kim.pk, two.pk, "I ride.", pinned=True),
        )
        for each in came_to:
            assert not isinstance(each, Exception) or isinstance(each, keeping.CannotKeep | Memory.DoesNotExist), each
        assert not hasattr(User.objects.get(pk=kim.pk), "memory_standing")
        for table in (Memory, SearchedWord, WordCount):
            assert not table.objects.exists()
