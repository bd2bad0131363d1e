"""Forms made of schemas: whatever an input is, a form that nobody changed gives it back, and nothing is coerced."""

from __future__ import annotations

import json

import pytest
from django.template.loader import render_to_string
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from agents.engine.ledger import JSON, canonical
from agents.engine.schema import problems, schema_of
from conversations.display.schema_form import SchemaForm
from conversations.display.value import kinds_in
from tests.budget import examples
from tests.conversations.display.forms import INPUTS, PLAIN, TEXTS, VALUES, Whole, sent

SCHEMA = schema_of(Whole)


def again(schema: dict[str, JSON], payload: dict[str, JSON], **changes: str) -> SchemaForm:
    """The form of this input after somebody typed these texts, by name, into it."""
    shown = SchemaForm(schema, payload)
    keys = {field.name: field.key for field in shown.fields}
    return SchemaForm(schema, payload, sent(shown) | {keys[name]: text for name, text in changes.items()})


@settings(max_examples=examples(150))
@given(INPUTS)
def test_a_form_that_nobody_changed_gives_the_same_input(payload: dict[str, JSON]) -> None:
    form = again(SCHEMA, payload)
    assert canonical(form.payload()) == canonical(payload)
    assert form.errors == {}
    assert not form.touched


@settings(max_examples=examples(200))
@given(st.dictionaries(TEXTS, VALUES, max_size=5))
def test_an_input_without_a_schema_comes_back_too(payload: dict[str, JSON]) -> None:
    form = again({"type": "object"}, payload)
    assert (canonical(form.payload()), form.errors) == (canonical(payload), {})


@settings(max_examples=examples(50))
@given(VALUES, INPUTS)
def test_what_is_typed_as_json_is_taken_as_it_is(value: JSON, payload: dict[str, JSON]) -> None:
    shown = SchemaForm(SCHEMA, payload | {"anything": value})
    field = next(field for field in shown.fields if field.name == "anything")
    assert field.kind == "json"
    form = again(SCHEMA, {name: each for name, each in payload.items() if name != "anything"}, anything=field.text)
    assert canonical(form.payload()["anything"]) == canonical(value)


@pytest.mark.parametrize(
    ("name", "typed", "value"),
    [
        ("text", "  two\r\n lines \t\r\n\r\n", "  two\n lines \t\n\n"),
        ("text", "", ""),
        ("note", "x", "x"),
        ("count", "-7", -7),
        ("count", "9" * 400, int("9" * 400)),
        ("ratio", "1.50", 1.5),
        ("ratio", "2", 2),
        ("stars", "4", 4),
        ("sure", "false", False),
        ("kind", "3", 3),
        ("kind", '"b\\n"', "b\n"),
        ("tags", " a\r\nb \r\n\r\nc", [" a", "b ", "c"]),
        ("tags", "", []),
        ("either", '"5"', "5"),
    ],
)
def test_what_is_typed_is_what_is_passed(name: str, typed: str, value: JSON) -> None:
    form = again(SCHEMA, PLAIN, **{name: typed})
    assert canonical(form.payload()) == canonical(PLAIN | {name: value})
    assert form.errors == {}
    assert problems(Whole, form.payload()) == []


@pytest.mark.parametrize(
    ("name", "typed", "why"),
    [
        ("count", "1.0", "whole number"),
        ("count", "1e3", "whole number"),
        ("count", "\u0661", "whole number"),
        ("count", "", "Enter a value"),
        ("ratio", "NaN", "Enter a number"),
        ("ratio", "1e999", "too large"),
        ("kind", '"c"', "not one of the choices"),
        ("many", "{name: 1}", "not valid JSON: Expecting property name"),
        ("many", '{"name": "a", "name": "b"}', "twice"),
        ("many", "[Infinity]", "Infinity is not valid JSON"),
        ("many", "[" * 100_000, "too deeply"),
        ("either", "", "Enter a value"),
    ],
)
def test_what_cannot_be_taken_is_said_at_its_field_and_kept(name: str, typed: str, why: str) -> None:
    form = again(SCHEMA, PLAIN, **{name: typed})
    form.payload()
    assert [*form.errors] == [name]
    field = next(field for field in form.fields if field.name == name)
    assert why in field.errors[0]
    assert field.text == typed


def test_what_may_be_left_out_stays_out_until_it_is_typed() -> None:
    assert again(SCHEMA, PLAIN, stars="", maybe="", note="").payload() == PLAIN
    assert again(SCHEMA, PLAIN | {"stars": 4}, stars="").payload() == PLAIN
    assert again(SCHEMA, PLAIN | {"note": None}, note="").payload() == PLAIN | {"note": None}
    fields = {field.name: field for field in SchemaForm(SCHEMA, PLAIN).fields}
    assert (fields["stars"].default, fields["ratio"].default) == ("3", "0.5")


def test_the_simplest_field_that_carries_a_value() -> None:
    kinds = {field.name: field.kind for field in SchemaForm(SCHEMA, PLAIN | {"note": "x\ny"}).fields}
    assert kinds == {
        "text": "line", "note": "text", "essay": "text", "count": "number", "stars": "number", "ratio": "number",
        "price": "number", "budget": "number", "sure": "choice", "maybe": "choice", "kind": "choice",
        "colour": "choice", "colours": "choices", "meals": "choices", "extras": "choices", "city": "search",
        "born": "date", "died": "date", "starts": "time", "at": "datetime", "until": "datetime", "takes": "duration",
        "waits": "duration", "home": "url", "mail": "email", "tags": "lines", "names": "lines", "numbers": "lines",
        "prices": "lines", "days": "lines", "address": "group", "second": "branches", "third": "group",
        "made": "branches", "pay": "branches", "tip": "branches", "form": "branches", "stops": "rows",
        "detours": "rows", "usual": "rows", "either": "json", "until_when": "json", "pair": "json", "many": "json",
        "anything": "json",
    }  # fmt: skip
    (command,) = SchemaForm({"properties": {"c": {"type": "string"}}}, {"c": "ls"}, code=frozenset({"c"})).fields
    assert (command.kind, command.code) == ("text", True)


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\U000e0100", "\u2028", "\x1b[31m", "\r", "\x00", "\xa0"])
def test_what_nobody_sees_is_spelled_out(hidden: str) -> None:
    """T-45: in an input as it was asked for, and in what somebody pasted, before it can be approved."""
    asked = PLAIN | {"text": f"a{hidden}b", "tags": [f"x{hidden}"]}
    for form in (SchemaForm(SCHEMA, asked), again(SCHEMA, PLAIN, text=f"a{hidden}b\n", tags=f"x{hidden}")):
        form.payload()
        for field in form.fields:
            assert hidden not in field.text or hidden == "\r"
    if hidden == "\r":
        return  # a browser never sends one by itself
    pasted = again(SCHEMA, PLAIN, text=f"a{hidden}b")
    pasted.payload()
    assert "invisible or misleading characters" in pasted.errors["text"][0]
    looked_at = SchemaForm(SCHEMA, PLAIN, sent(pasted))
    assert looked_at.payload() == PLAIN | {"text": f"a{hidden}b"}
    assert looked_at.errors == {}
    assert json.loads(next(field.text for field in looked_at.fields if field.name == "text")) == f"a{hidden}b"


def test_what_others_found_wrong_stands_at_its_field_or_above() -> None:
    form = SchemaForm(SCHEMA, PLAIN, errors={"tags.0": ["too short"], "input": ["odd"], "gone": ["not known"]})
    assert [field.errors for field in form.fields if field.errors] == [["too short"]]
    assert form.others == ["input: odd", "gone: not known"]


class Told(BaseModel):
    command: str = Field(min_length=1, description="What to <run>.")


def test_a_description_is_told_and_nothing_in_it_is_markup() -> None:
    form = SchemaForm(schema_of(Told), {"command": "</textarea><script>"})
    html = render_to_string("conversations/card/fields.html", {"form": form, "prefix": "x"})
    assert "What to &lt;run&gt;." in html
    assert "<script>" not in html


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": True}},
        {"properties": {"a": {"anyOf": [True, {"type": "null"}]}}},
        {"properties": {"a": {"$ref": "#"}}},
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}},
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": True}},
    ],
)
def test_what_a_schema_says_nothing_of_is_typed_as_json(schema: dict[str, JSON]) -> None:
    """A schema that a program wrote by hand may be true, or lead back to itself."""
    (field,) = SchemaForm(schema, {}).fields
    assert (field.kind, field.label) == ("json", "A")
    assert SchemaForm(schema, {}, {"json-0": "[1]"}).payload() == {"a": [1]}
    assert "string" in kinds_in(schema)["a"]
