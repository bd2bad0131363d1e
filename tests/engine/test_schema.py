"""What is wrong with a value under a JSON Schema: told in time, and in few words, however long the value is."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pydantic import RootModel

from agents.engine.schema import MESSAGE_MOST, PROBLEMS_MOST, problem, problems, schema_problems

UNIQUE: dict[str, Any] = {"properties": {"tags": {"type": "array", "uniqueItems": True}}}
NUMBERS: dict[str, Any] = {"properties": {"tags": {"type": "array", "items": {"type": "integer"}}}}


@pytest.mark.parametrize(
    ("tags", "unique"),
    [
        ([], True),
        (["a", "b", 1, "1", None, [], {}], True),
        ([1, True, 0, False], True),
        ([[1], [True], [1, 1]], True),
        ([1.5, 1, "1.0"], True),
        ([{"a": 1}, {"a": 2}, {"b": 1}], True),
        (["a", "b", "a"], False),
        ([1, 1.0], False),
        ([0, -0.0], False),
        ([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}], False),
        ("aa", None),
    ],
)
def test_what_is_there_twice_is_told(tags: Any, unique: bool | None) -> None:
    """As JSON Schema has it: 1 and 1.0 are the same, 1 and true are not."""
    found = schema_problems(UNIQUE, {"tags": tags})
    assert [place for place, _ in found] == ([] if unique else ["tags"])
    assert unique is None or all(why == "List each only once" for _, why in found)
    assert not schema_problems({"properties": {"tags": {"uniqueItems": False}}}, {"tags": tags})


def test_many_objects_are_compared_in_one_pass() -> None:
    """Each with each took 26 s."""
    began = time.process_time()
    assert not schema_problems(UNIQUE, {"tags": [{"a": number} for number in range(3_000)]})
    assert time.process_time() - began < 2


def test_only_the_first_problems_are_told() -> None:
    """The message about 300,000 wrong items had 12 million characters."""
    wrong: dict[str, Any] = {"tags": ["x"] * 300_000}
    assert [place for place, _ in schema_problems(NUMBERS, wrong)] == [f"tags.{n}" for n in range(PROBLEMS_MOST)]
    assert len(problem(NUMBERS, wrong) or "") < PROBLEMS_MOST * MESSAGE_MOST
    assert len(problems(RootModel[dict[str, list[int]]], wrong)) == PROBLEMS_MOST
