"""Schemas from strangers: whatever they are, a value is checked in little time, and nothing outside is reached."""

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.foreign_schema import check_foreign_schema, foreign_problems
from agents.engine.ledger import JSON
from agents.engine.schema import schema_problems

TEXT: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
DOUBLING = {
    "type": "object",
    "$ref": "#/$defs/d0",
    "$defs": {
        **{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(40)},
        "d40": {"properties": {"a": {"type": "string"}}},
    },
}
ENDLESS = {"type": "object", "allOf": [{"$ref": "#"}, {"$ref": "#"}]}
LONG_ENUM: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"items": {"enum": [*range(5000), "last"]}}},
}
MANY = {"type": "object", "properties": {"a": {"items": {"allOf": [{"minimum": 0}] * 1500}}}}


def nested(keyword: str, depth: int = 20) -> dict[str, Any]:
    """A schema whose every level has this keyword."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a": True}}
    for _ in range(depth):
        schema = {"type": "object", keyword: False, "anyOf": [schema]}
    return schema


MANY_WAYS = {
    "type": "object",
    "$defs": {"b": {"anyOf": [{"const": n} for n in range(1000)]}},
    "properties": {"a": {"anyOf": [{"type": "null"}, {"items": {"not": {"$ref": "#/$defs/b"}}}]}},
}


@pytest.mark.parametrize("schema", [DOUBLING, ENDLESS], ids=["doubling", "endless"])
def test_one_that_would_take_for_ever_is_given_up(schema: dict[str, Any]) -> None:
    check_foreign_schema(schema)
    ((place, why),) = foreign_problems(schema, {"a": "b"})
    assert (place, "cannot be checked" in why) == ("", True)


@pytest.mark.parametrize(("schema", "value"), [(LONG_ENUM, "last"), (MANY, 1)], ids=["long enum", "many"])
def test_one_that_asks_for_too_much_is_given_up_in_time(schema: dict[str, Any], value: JSON) -> None:
    check_foreign_schema(schema)
    began = time.process_time()
    ((place, why),) = foreign_problems(schema, {"a": [value] * 50_000})
    assert (place, "cannot be checked" in why) == ("", True)
    assert time.process_time() - began < 5


def test_a_long_answer_can_be_checked() -> None:
    row = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": [*"abcdefgh"] * 10}}}
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": row}}}
    assert not foreign_problems(schema, {"rows": [{"a": n, "b": "a"} for n in range(5000)]})


def test_a_number_that_is_too_large_for_a_float_is_checked() -> None:
    schema = {"type": "object", "properties": {"a": {"multipleOf": 0.5}, "b": {"multipleOf": 1.5}}}
    ((place, _),) = foreign_problems(schema, {"a": 10**400, "b": 10**400})
    assert place == "b"


def test_many_alternatives_for_many_values_are_given_up() -> None:
    check_foreign_schema(MANY_WAYS)
    ((place, why),) = foreign_problems(MANY_WAYS, {"a": ["b"] * 9_000})
    assert (place, "too many checks" in why) == ("", True)
    assert not foreign_problems(MANY_WAYS, {"a": ["b"] * 40})


def test_a_number_that_no_float_can_hold_is_divided_all_the_same() -> None:
    schema = {"type": "object", "properties": {"a": {"multipleOf": 0.1}}}
    check_foreign_schema(schema)
    assert foreign_problems(schema, {"a": 10**400}) == []
    assert foreign_problems(schema, {"a": 0.15})


def test_a_pattern_takes_linear_time() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    check_foreign_schema(schema)
    began = time.process_time()
    assert foreign_problems(schema, {"a": "a" * 50_000 + "b"})
    assert time.process_time() - began < 1
    assert not foreign_problems(schema, {"a": "aaa"})


def test_a_schema_of_a_tree_can_be_used() -> None:
    schema = {"type": "object", "properties": {"in": {"type": "array", "items": {"$ref": "#"}}}, "required": ["in"]}
    check_foreign_schema(schema)
    assert not foreign_problems(schema, {"in": [{"in": []}, {"in": [{"in": []}]}]})
    assert foreign_problems(schema, {"in": [{}]}) == [("in.0.in", "Field required")]


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"type": "string"}, "of an object"),
        ({"type": "object", "patternProperties": {"(a+)+$": {}}}, "patternProperties"),
        ({"type": "object", "properties": {"a": {"pattern": "(?=a)"}}}, "RE2"),
        ({"type": "object", "$ref": "https://example.com/a.json"}, "does not hold"),
        ({"type": "object", "properties": {"a": {"$id": "https://example.com/", "$ref": "b"}}}, "\\$id"),
        (nested("unevaluatedProperties"), "unevaluatedProperties"),
        (nested("unevaluatedItems"), "unevaluatedItems"),
        ({"type": "object", "title": "x" * 40_000}, "at most"),
        ({"type": "object", "properties": []}, "not a JSON Schema"),
        ({"type": "object", "allOf": [{"unevaluatedProperties": False}]}, "unevaluatedProperties"),
        ({"type": "object", "title": "t", "allOf": [{"$ref": "#/title"}]}, "'#/title', which is not a JSON Schema"),
        ({"type": "object", "title": "t", "allOf": [{"$ref": "#/title/a"}]}, "does not hold"),
        ({"type": "object", "allOf": [{"$ref": "#/allOf/a"}]}, "'#/allOf/a', which it does not hold"),
        ({"type": "object", "examples": [{"type": "strin"}], "allOf": [{"$ref": "#/examples/0"}]}, "not a JSON Schema"),
    ],
)
def test_one_that_cannot_be_used_says_why(schema: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        check_foreign_schema(schema)


@given(st.dictionaries(st.text(max_size=3), st.one_of(st.text(), st.integers(), st.none()), max_size=3))
def test_without_patterns_and_references_it_finds_what_any_checker_finds(value: dict[str, Any]) -> None:
    assert foreign_problems(TEXT, value) == schema_problems(TEXT, value)
