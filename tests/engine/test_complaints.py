"""What is wrong with an input is said in plain words, whether pydantic or JSON Schema found it."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from enum import Enum
from typing import Annotated, Any, Literal, get_args

import pytest
from jsonschema import Draft202012Validator
from pydantic import AwareDatetime, BaseModel, Field, HttpUrl, RootModel, field_validator
from pydantic_core._pydantic_core import list_all_errors
from pydantic_core.core_schema import ErrorType

from agents.engine import complaints
from agents.engine.runtime.asking import answer_problems
from agents.engine.schema import check_schema, problem, problems, schema_of, schema_problems


class Bar(BaseModel):
    name: str = "a"


class Chart(BaseModel):
    bars: Annotated[list[Bar], Field(min_length=1, max_length=12)] = [Bar()]
    of_each: Annotated[list[int], Field(min_length=2)] = [1, 2]
    title: Annotated[str, Field(min_length=1, max_length=5)] = "a"
    code: Annotated[str, Field(min_length=3)] = "abc"
    size: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    kind: Literal["bar", "line", "pie"] = "bar"
    wide: bool = False


BOTH: list[tuple[dict[str, Any], str]] = [
    ({"bars": [{}] * 13}, "bars: Give at most 12 bars; there are 13"),
    ({"bars": []}, "bars: Give at least one"),
    ({"of_each": [1]}, "of_each: Give at least 2; there is 1"),
    ({"title": "abcdef"}, "title: Enter at most 5 characters; this has 6"),
    ({"title": ""}, "title: Enter a value"),
    ({"code": "a"}, "code: Enter at least 3 characters"),
    ({"size": 0}, "size: Enter a number that is 1 or more"),
    ({"size": 2_000_000}, "size: Enter a number that is 1,000,000 or less"),
    ({"share": 0.0}, "share: Enter a number that is more than 0"),
    ({"share": 1.0}, "share: Enter a number that is less than 1"),
    ({"kind": "dot"}, "kind: Choose 'bar', 'line' or 'pie'"),
    ({"size": "3"}, "size: Enter a whole number"),
    ({"share": "3"}, "share: Enter a number"),
    ({"title": 3}, "title: Enter a text"),
    ({"wide": "yes"}, "wide: Enter true or false"),
    ({"bars": {}}, "bars: Give a list"),
    ({"bars": [3]}, "bars.0: Give an object with fields"),
]


@pytest.mark.parametrize(("payload", "words"), BOTH)
def test_pydantic_and_json_schema_say_the_same(payload: dict[str, Any], words: str) -> None:
    assert problem(Chart, payload) == words
    assert problem(schema_of(Chart), payload) == words


class Trip(BaseModel):
    city: str
    day: date = date(2026, 1, 1)
    at: datetime = datetime(2026, 1, 1)  # noqa: DTZ001 - only parsed
    page: HttpUrl | None = None

    @field_validator("city")
    @classmethod
    def known(cls, city: str) -> str:
        if city == "Nowhere":
            raise ValueError("Nobody, except poets, goes there")
        return city


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({}, "city: Field required"),
        ({"city": "Nowhere"}, "city: Nobody, except poets, goes there"),
        ({"city": "Rome", "day": "soon"}, "day: Enter a date as year-month-day, such as 2026-11-30"),
        ({"city": "Rome", "at": "soon"}, "at: Enter a date and a time, such as 2026-11-30T09:30"),
        ({"city": "Rome", "page": "x"}, "page: Enter a web address, such as https://example.com/"),
        ({"city": "Rome", "stars": 3}, "stars: not known; there are: at, city, day, page"),
    ],
)
def test_an_input_of_pydantic(payload: dict[str, Any], words: str) -> None:
    """Authors' own words are kept as they wrote them."""
    assert problem(Trip, payload) == words


@pytest.mark.parametrize(
    ("schema", "payload", "words"),
    [
        ({"required": ["city"]}, {}, "city: Field required"),
        (
            {"properties": {"a": {"required": ["b", "b's"]}}},
            {"a": {}},
            "a.b: Field required; a.b's: Field required",
        ),
        (
            {"properties": {"city": {}}, "additionalProperties": False},
            {"town": 1},
            "town: not known; there are: city",
        ),
        ({"properties": {"tags": {"uniqueItems": True}}}, {"tags": [1, 1]}, "tags: List each only once"),
        ({"properties": {"n": {"multipleOf": 5}}}, {"n": 3}, "n: Enter a number in steps of 5"),
        ({"properties": {"n": {"anyOf": [{"type": "string"}]}}}, {"n": 3}, "n: This is not accepted here"),
        ({"properties": {"n": {"enum": list(range(50))}}}, {"n": 99}, "n: This is not one of the choices"),
    ],
)
def test_an_input_of_json_schema(schema: dict[str, Any], payload: dict[str, Any], words: str) -> None:
    """A field that is missing is named as the place."""
    assert problem(schema, payload) == words


def test_a_schema_without_choices_says_so() -> None:
    """It raised ValueError, and the card with it."""
    schema: dict[str, Any] = {"properties": {"n": {"enum": []}}}
    check_schema(schema)
    assert answer_problems({"schema": schema}, {"n": 1}) == {"n": ["There is nothing to choose from"]}


class Colour(Enum):
    RED = "red"
    NONE = "None"


class Bounds(BaseModel):
    day: Annotated[date, Field(ge=date(2026, 1, 1), lt=date(2027, 1, 1))] = date(2026, 1, 1)
    at: Annotated[AwareDatetime, Field(gt=datetime.fromisoformat("2026-01-01T09:30Z"))] = datetime.max  # noqa: DTZ901
    clock: Annotated[time, Field(ge=time(8), le=time(9, 30))] = time(9)
    length: Annotated[timedelta, Field(le=timedelta(hours=1))] = timedelta()
    any_of: Literal["a", None, True, "it's None"] = "a"
    colour: Literal[Colour.RED, Colour.NONE] = Colour.RED
    code: Annotated[str, Field(pattern="^x$")] = "x"
    status: Annotated[list[int], Field(max_length=1)] = []
    address: Annotated[list[int], Field(max_length=2)] = []


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ({"day": "2025-01-01"}, "day: Enter a value on or after 2026-01-01"),
        ({"day": "2028-01-01"}, "day: Enter a value before 2027-01-01"),
        ({"at": "2025-01-01T00:00Z"}, "at: Enter a value after 2026-01-01T09:30:00Z"),
        ({"at": "2026-11-30T09:30"}, "at: Include the time zone, such as 2026-11-30T09:30+01:00"),
        ({"clock": "07:00"}, "clock: Enter a value at or after 08:00:00"),
        ({"clock": "10:00"}, "clock: Enter a value at or before 09:30:00"),
        ({"length": "PT2H"}, "length: Enter a value that is 1 hour or less"),
        ({"any_of": 3}, "any_of: Choose 'a', null, true or \"it's None\""),
        ({"colour": "blue"}, "colour: Choose 'red' or 'None'"),
        ({"code": "no"}, "code: Enter a text that matches the pattern ^x$"),
        ({"status": [1, 2]}, "status: Give at most 1; there are 2"),
        ({"address": [1, 2, 3]}, "address: Give at most 2; there are 3"),
    ],
)
def test_bounds_and_choices_are_told_as_what_they_are(payload: dict[str, Any], words: str) -> None:
    """A date is no number, and JSON has no None."""
    assert problem(Bounds, payload) == words


@pytest.mark.parametrize(
    ("schema", "given", "words"),
    [
        ({"additionalProperties": False}, {"a": 1}, "not known; there are no fields here"),
        ({"enum": ["a", None, True, {"b": False}]}, 3, "Choose 'a', null, true or {\"b\": false}"),
        ({"const": "yes"}, "no", "Choose 'yes'"),
        ({"const": None}, "no", "Leave this empty"),
        ({"pattern": "^x$"}, "no", "Enter a text that matches the pattern ^x$"),
        ({"type": ["string", "null"]}, 1, "Enter a text, or leave this empty"),
        ({"type": ["string", "integer", "array"]}, None, "Enter a text, a whole number or a list"),
        ({"minProperties": 2}, {"a": 1}, "Give at least 2 fields; there is 1"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "Give 'b' too, because 'a' is given"),
        (False, 1, "This is not accepted here"),
        ({"not": {}}, 1, "This is not accepted here"),
        ({"contains": {"type": "string"}}, [1], "Add an item of the kind that is needed in this list"),
        ({"prefixItems": [{}], "items": False}, [1, 2], "There are more items than this list may have"),
        ({"patternProperties": {"^x": {}}, "additionalProperties": False}, {"a": 1}, "not known"),
    ],
)
def test_a_keyword_is_told_in_plain_words(schema: Any, given: Any, words: str) -> None:
    """Even what is rarely used: the validator's own words are for programmers."""
    assert [why for _, why in schema_problems({"properties": {"n": schema}}, {"n": given})] == [words]


BAD_WORDS = re.compile(r"\b(None|True|False|should|validation)\b|\[\]|: ?$|(Choose|of|are|is)$")
"""What no complaint says: Python's words, a programmer's, and a list of nothing."""

BROKEN: dict[str, list[tuple[Any, Any]]] = {
    "$dynamicRef": [({"$dynamicRef": "#/$defs/t"}, 1)],
    "$ref": [({"$ref": "#/$defs/t"}, 1)],
    "additionalProperties": [({"additionalProperties": False}, {"a": None})],
    "allOf": [({"allOf": [{"type": "null"}]}, True)],
    "anyOf": [({"anyOf": [{"type": "null"}, {"const": False}]}, True)],
    "const": [({"const": None}, True), ({"const": True}, None), ({"const": []}, None)],
    "contains": [({"contains": {"const": 1}}, [None]), ({"contains": {}, "minContains": 2}, [1]),
                 ({"contains": {}, "maxContains": 1}, [None, True])],
    "dependentRequired": [({"dependentRequired": {"a": ["b", "c"]}}, {"a": None})],
    "dependentSchemas": [({"dependentSchemas": {"a": {"required": ["b"]}}}, {"a": None})],
    "enum": [({"enum": []}, 1), ({"enum": [None, True, False]}, 1), ({"enum": [None] * 30}, 1)],
    "exclusiveMaximum": [({"exclusiveMaximum": 1}, 1)],
    "exclusiveMinimum": [({"exclusiveMinimum": 1}, 1)],
    "format": [],
    "if": [({"if": {}, "then": {"type": "string"}}, None), ({"if": False, "else": False}, None)],
    "items": [({"items": {"type": "null"}}, [True]), ({"items": False}, [None])],
    "maxItems": [({"maxItems": 0}, [None])],
    "maxLength": [({"maxLength": 0}, "None")],
    "maxProperties": [({"maxProperties": 0}, {"a": None})],
    "maximum": [({"maximum": 1}, 2)],
    "minItems": [({"minItems": 1}, [])],
    "minLength": [({"minLength": 1}, "")],
    "minProperties": [({"minProperties": 1}, {})],
    "minimum": [({"minimum": 1}, 0)],
    "multipleOf": [({"multipleOf": 2}, 1)],
    "not": [({"not": {"type": "null"}}, None)],
    "oneOf": [({"oneOf": [{}, {}]}, None), ({"oneOf": [{"type": "null"}]}, True)],
    "pattern": [({"pattern": "^x$"}, "None")],
    "patternProperties": [({"patternProperties": {"a": False}}, {"a": None})],
    "prefixItems": [({"prefixItems": [{"type": "null"}]}, [True])],
    "properties": [({"properties": {"a": False}}, {"a": None})],
    "propertyNames": [({"propertyNames": {"maxLength": 1}}, {"ab": None}), ({"propertyNames": False}, {"a": None})],
    "required": [({"required": ["a"]}, {})],
    "type": [({"type": each}, "x" if each != "string" else 1)
             for each in ("string", "integer", "number", "boolean", "array", "object", "null", ["null", "object"])],
    "unevaluatedItems": [({"unevaluatedItems": False}, [None])],
    "unevaluatedProperties": [({"unevaluatedProperties": False}, {"a": None})],
    "uniqueItems": [({"uniqueItems": True}, [None, None])],
}  # fmt: skip
"""For each keyword of JSON Schema that is checked, values that break it. Formats are not checked."""


def test_the_keywords_are_all_that_are_checked() -> None:
    assert BROKEN.keys() == Draft202012Validator.VALIDATORS.keys()


@pytest.mark.parametrize(("schema", "given"), [each for some in BROKEN.values() for each in some])
def test_no_complaint_of_json_schema_speaks_to_programmers(schema: Any, given: Any) -> None:
    whole = {"properties": {"n": schema}, "$defs": {"t": {"$dynamicAnchor": "t", "type": "string"}}}
    found = schema_problems(whole, {"n": given})
    assert found
    assert not [why for _, why in found if BAD_WORDS.search(why) or why.endswith(".")]


TEMPLATES = {each["type"]: each["message_template_python"] for each in list_all_errors()}
"""Pydantic's own words for each type of its errors."""


@pytest.mark.parametrize("kind", get_args(ErrorType))
@pytest.mark.parametrize("filled", [False, True])
def test_no_complaint_of_pydantic_speaks_to_programmers(kind: Any, filled: bool) -> None:
    """Every kind of its errors, with nothing and with something in what it tells."""
    context = dict.fromkeys(re.findall(r"{(\w+)}", TEMPLATES[kind]), "'a'" if filled else "")
    told = {
        "type": kind,
        "ctx": {key: 2 if key in _NUMBERS else value for key, value in context.items()},
        "loc": ("a",),
        "msg": TEMPLATES[kind],
        "input": None,
    }
    words = complaints.of_pydantic(told)
    assert words
    assert not BAD_WORDS.search(words)
    assert not words.endswith(".")


_NUMBERS = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "actual_length", "max_digits",
            "decimal_places", "whole_digits")  # fmt: skip
"""What is a number in the context of an error."""


@pytest.mark.parametrize(
    ("complaint", "words"),
    [("not known", "Not known."), ("Odd.", "Odd."), ("Why?", "Why?"), ("'a' is odd", "'a' is odd.")],
)
def test_a_complaint_becomes_one_sentence(complaint: str, words: str) -> None:
    """Authors may have written one, with its full stop."""
    assert complaints.sentence(complaint) == words


def test_unknown_fields_are_named_in_short() -> None:
    """The place named all of them: 19,888 characters for 3,000 fields. It is a key in the answer of the API."""
    many = {f"f{number:04}": 1 for number in range(3_000)}
    first = ", ".join(f"f{number:04}" for number in range(10))
    for input in (Trip, schema_of(Trip)):
        found = problems(input, {"city": "Rome", **many}) if isinstance(input, type) else schema_problems(
            input, {"city": "Rome", **many}
        )  # fmt: skip
        assert found == [(f"{first}, and 2,990 more", "not known; there are: at, city, day, page")]
    ((place, _),) = schema_problems({"additionalProperties": False}, {"x" * 20_000: 1})
    assert len(place) == 100
    nested = problems(RootModel[list[Bar]], [{"odd": 1}] * 300)  # type: ignore[arg-type]
    assert len(nested) == 50
