"""Memories never cross people, whatever they save, change, pin, forget, search for, or give as a number."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.models import Memory, SearchedWord, WordCount
from agents.plugins.memory import keeping
from agents.plugins.memory.keeping import CannotKeep
from conversations.erasure.people import erase_user
from tests.budget import examples
from tests.conversations.support import person

pytestmark = pytest.mark.django_db

WORD = st.sampled_from(["tea", "bicycle", "cat", "\u7dd1\u8336", "caf\u00e9", "the", "\U0001f375"])
TEXT = st.lists(WORD, max_size=4).map(" ".join)
PLACE = st.integers(0, 5)
ACTION = st.one_of(
    st.tuples(st.just("save"), TEXT, st.booleans()),
    st.tuples(st.just("change"), PLACE, TEXT, st.booleans()),
    st.tuples(st.just("pin"), PLACE, st.booleans()),
    st.tuples(st.just("forget"), PLACE),
)
"""What somebody does. A place stands for the row of anybody, the first for the oldest."""


@pytest.fixture
def ann(db: None) -> User:
    return person("ann")


@pytest.fixture
def kim(db: None) -> User:
    return person("kim")


def do(user: int, verb: str, *given: object) -> None:
    """Do it; what is refused does nothing."""
    rows = list(Memory.objects.order_by("pk").values_list("pk", flat=True))
    with suppress(CannotKeep, Memory.DoesNotExist):
        match verb, *given:
            case "save", str(text), bool(pinned):
                keeping.save(user, text, pinned=pinned)
            case "change", int(place), str(text), bool(pinned):
                keeping.change(user, rows[place] if place < len(rows) else 0, text, pinned=pinned)
            case "pin", int(place), bool(pinned):
                keeping.pin(user, rows[place] if place < len(rows) else 0, pinned)
            case "forget", int(place):
                keeping.forget(user, rows[place] if place < len(rows) else 0)


def rows_of(user: int) -> list[tuple[int, str, bool]]:
    return list(Memory.objects.filter(user=user).values_list("pk", "text", "pinned"))


@given(st.lists(st.tuples(st.booleans(), ACTION), max_size=12), TEXT)
@settings(max_examples=examples(50), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nobody_finds_or_changes_what_is_another_persons(
    ann: User, kim: User, actions: list[tuple[bool, tuple[str, object]]], sought: str
) -> None:
    for row in Memory.objects.all():
        row.delete()
    for is_ann, action in actions:
        one, other = (ann.pk, kim.pk) if is_ann else (kim.pk, ann.pk)
        before = rows_of(other)
        do(one, *action)
        assert rows_of(other) == before
    everybodys = list(Memory.objects.values_list("pk", flat=True))
    for user in (ann.pk, kim.pk):
        mine = {pk for pk, _, _ in rows_of(user)}
        assert {each.pk for each in keeping.find(user, sought, 100)} <= mine
        recalled = keeping.recall(user, None, found=everybodys)
        assert {each.pk for each in (recalled.memories if recalled else [])} == mine
        words = SearchedWord.objects.filter(collection=f"memory:{user}")
        assert set(words.values_list("row", flat=True)) == mine


def statements(user: User, goes: Callable[[User], object], memories: int) -> int:
    """Return how many statements it takes that somebody with so many memories goes."""
    for number in range(memories):
        keeping.save(user.pk, f"Cups of {number} colours stand on green shelves.")
    with CaptureQueriesContext(connection) as seen:
        goes(user)
    assert not Memory.objects.exists()
    assert not SearchedWord.objects.exists()
    assert not WordCount.objects.exists()
    return len(seen)


@pytest.mark.parametrize("way", ["erased", "deleted"])
def test_a_person_with_many_memories_goes_as_fast_as_one_with_few(way: str, ann: User, kim: User) -> None:
    """A statement for each memory, which looks whether it still has words; none writes word by word."""
    chief = person("chief", is_superuser=True)
    goes: Callable[[User], object] = (lambda user: erase_user(user, chief)) if way == "erased" else User.delete
    few, many = statements(ann, goes, 1), statements(kim, goes, 41)
    assert many - few <= 40


def test_with_a_person_their_words_go_too(ann: User, kim: User) -> None:
    for user in (ann, kim):
        keeping.save(user.pk, "Green tea.")
    ann.delete()
    for table in (SearchedWord, WordCount):
        assert set(table.objects.values_list("collection", flat=True)) == {f"memory:{kim.pk}"}
