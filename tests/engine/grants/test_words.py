"""Places and values in words: an agent chooses them, and they read as nothing else."""

from __future__ import annotations

import pytest

from agents.engine.grants.conditions import parts_of
from agents.engine.grants.words import VALUE_MOST, place_words, value_words
from agents.engine.ledger import JSON


@pytest.mark.parametrize(
    ("input", "words"),
    [
        ({"path": 1}, "path"),
        ({"max-depth": 1}, "max-depth"),
        ({"to": [1]}, "item 1 of to"),
        ({"lines": [{"pieces": 1}]}, "pieces in item 1 of lines"),
        ({"tags": {"2": 1}}, "2 in tags"),
        ({"tags": {"a.b": 1}}, "“a.b” in tags"),
        ({"tags": {"": 1}}, "“” in tags"),
        ({"tags": {"path is “x” and url": 1}}, '"path is “x” and url" in tags'),
    ],
)
def test_places(input: dict[str, JSON], words: str) -> None:
    """A field with a name of digits is no item, and a name that could be read as words is quoted."""
    assert [place_words(place) for place, _ in parts_of(input)] == [words]


def test_arguments_of_a_program_have_the_numbers_that_they_have_on_its_card() -> None:
    places = [place for place, _ in parts_of({"argv": ["ls", "-la"], "cwd": "."})]
    assert [place_words(place, "program") for place in places] == ["the program", "argument 1", "cwd"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("a", "“a”"),
        ("a” and b is “c", '"a” and b is “c"'),
        ('a” and "b', '"a” and \\"b"'),
        ("x" * (VALUE_MOST + 1), f"“{'x' * VALUE_MOST}…” ({VALUE_MOST + 1:,} characters)"),
        (True, "true"),
    ],
)
def test_a_value_ends_where_it_seems_to(value: JSON, words: str) -> None:
    assert value_words(value) == words
