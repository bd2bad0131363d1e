"""What is wrong with an input is said in plain words, whether pydantic or JSON Schema found it."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, HttpUrl, field_validator

from agents.engine.schema import problem, schema_of


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
        ({"properties": {"tags": {"uniqueItems": True}}}, {"tags": [1, 1]}, "tags: Give each only once"),
        ({"properties": {"n": {"multipleOf": 5}}}, {"n": 3}, "n: Enter a number in steps of 5"),
        ({"properties": {"n": {"anyOf": [{"type": "string"}]}}}, {"n": 3}, "n: This is none of what is accepted here"),
        ({"properties": {"n": {"enum": list(range(50))}}}, {"n": 99}, "n: This is not one of the choices"),
    ],
)
def test_an_input_of_json_schema(schema: dict[str, Any], payload: dict[str, Any], words: str) -> None:
    """A field that is missing is named as the place."""
    assert problem(schema, payload) == words
