"""Paths and actors: how calls are named, and who did a step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine import actors, paths
from agents.engine.actors import Actor, Kind

PATHS = st.lists(st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=5), max_size=5).map("/".join)


@given(PATHS, st.integers(1, 1_000))
def test_gate_and_card_of_every_call_stand_one_step_below_it(path: str, attempt: int) -> None:
    for gate in (paths.gate(path), paths.card(path, attempt)):
        assert paths.is_gate(gate)
        assert paths.parent(gate) == path
        assert path in paths.ancestors(gate)


@pytest.mark.parametrize("path", ["", "3", "3/1", "3/1/card", "3/1/card0", "3/1/cards1", "3/1/human/2", "human1"])
def test_other_paths_are_no_gates(path: str) -> None:
    assert not paths.is_gate(path)


@given(PATHS, st.text(min_size=1, max_size=5).filter(lambda key: "/" not in key))
def test_a_call_below_another_names_it(path: str, key: str) -> None:
    assert paths.parent(paths.join(path, key)) == path


@given(st.sampled_from(Kind), st.text("abc0123456789.:/", max_size=10))
def test_an_actor_is_the_same_after_it_was_written_and_read(kind: Kind, id: str) -> None:
    assert Actor.parse(str(Actor(kind, id))) == Actor(kind, id)


@given(st.text())
def test_whatever_a_ledger_says_somebody_did_it(text: str) -> None:
    assert Actor.parse(text).pk is None or Actor.parse(text).pk == int(Actor.parse(text).id)


def test_a_person_is_known_by_their_primary_key() -> None:
    assert (Actor.parse(actors.user(7)).kind, Actor.parse(actors.user(7)).pk) == (Kind.USER, 7)
    assert [Actor.parse(text).pk for text in ("user:x", "user:", "user", "user:1.5", "user:²")] == [None] * 5
