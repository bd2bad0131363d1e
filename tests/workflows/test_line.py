"""Lines: what a run reads as starts the same run, and what people type is read as a shell and the form read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from agents.engine.ledger import JSON, canonical
from agents.engine.schema import schema_of
from tests.budget import examples
from workflows.line import BadLine, Line, line_of, parse_line


class Scalars(BaseModel):
    """One field of each kind of scalar, needed or not, and each that may be null."""

    text: str
    note: str | None = "none"
    title: str = "Untitled"
    count: int
    ratio: float = 0.5
    limit: int | None = 3
    sure: bool
    maybe: bool | None = True
    kind: Literal["a", "b c", "3", 3, "null", '"a"', None]
    either: int | str | None = None
    anything: Any = None
    tags: list[str] = []


class Shop(BaseModel):
    password: SecretStr | None = None
    size: Literal["small", "large"] = "small"
    name: str = ""
    pieces: int = 1
    tags: list[str] = []
    wish: str = ""
    open: bool = True


@dataclass(frozen=True)
class Named:
    name: str
    model: type[BaseModel]

    @property
    def schema(self) -> dict[str, JSON]:
        return schema_of(self.model)


SHOP, SCALARS = Named("shop.open", Shop), Named("x", Scalars)


def find(name: str) -> Named | None:
    return next((each for each in (SHOP, SCALARS) if each.name == name), None)


def read(text: str) -> Line[Named]:
    line = parse_line(text, find)
    assert line is not None
    return line


def given_by(text: str) -> dict[str, JSON]:
    """The input of a line without problems."""
    line = read(text)
    assert line.form.errors == {}
    return line.input


def wrong(text: str) -> dict[str, list[str]]:
    return dict(read(text).form.errors)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=30) | st.text(
    " \t\n\r\x0b\x00\u2028ab=-/:\\$\u202e\xa0'\"<&[{", max_size=12
)
TEXTS |= st.sampled_from(["null", "true", "3", "-rf", "--wait", "a=b", '"a"', "[]", "'", '"', "\\", "/x", "a\nb"])
NUMBERS = st.integers() | st.integers(10**300, 10**301)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
INPUTS = st.fixed_dictionaries(
    {
        "text": TEXTS,
        "count": NUMBERS,
        "sure": st.booleans(),
        "kind": st.sampled_from(["a", "b c", "3", 3, "null", '"a"', None]),
    },
    optional={
        "note": TEXTS | st.none(),
        "title": TEXTS,
        "ratio": FLOATS,
        "limit": NUMBERS | st.none(),
        "maybe": st.booleans() | st.none(),
        "either": NUMBERS | TEXTS | st.none(),
        "anything": TEXTS | FLOATS | st.none() | st.booleans(),
        "tags": st.lists(TEXTS, max_size=3),
    },
)


@settings(max_examples=examples(300), deadline=None)
@given(INPUTS)
@example({"text": "", "count": 0, "sure": False, "kind": None, "tags": []})
@example({"text": 'a\'b\n\nc=d "e"\\', "count": 0, "sure": True, "kind": 3, "note": None, "tags": ["[]", "-x"]})
def test_the_line_of_an_input_is_read_as_this_input(input: dict[str, JSON]) -> None:
    assert canonical(given_by(line_of("x", input, SCALARS.schema))) == canonical(input)


@settings(max_examples=examples(300), deadline=None)
@given(st.text(" \t\n\r=:'\"\\/abpieces\u202e", max_size=40))
def test_whatever_is_typed_is_read_or_refused_with_a_reason(text: str) -> None:
    try:
        line = read(f"/shop.open {text}")
    except BadLine as error:
        assert "put \\ before it" in str(error)  # noqa: PT017 - either outcome is right
    else:
        _ = line.form.fields


def test_a_run_reads_as_one_would_type_it() -> None:
    input: dict[str, JSON] = {"name": "My shop", "pieces": 3, "open": False, "size": "large", "tags": ["a", "b c"]}
    told = "/shop.open name='My shop' pieces=3 open=false size=large tags=a tags='b c'"
    assert line_of("shop.open", input, SHOP.schema) == told
    assert line_of("x", {"note": None, "text": ""}, SCALARS.schema) == "/x note:=null text:='\"\"'"


def test_secrets_are_left_out() -> None:
    input: dict[str, JSON] = {"password": {"$secret": "password"}, "name": "x"}
    assert line_of("shop.open", input, SHOP.schema) == "/shop.open name=x"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "Hi.",
        "shop.open",
        " hi /shop.open",
        "/no.such a=b",
        "/shop.opening",
        "//shop.open",
        "/shop.open/x",
        "/x'",
    ],
)
def test_what_names_no_workflow_is_a_message(text: str) -> None:
    assert parse_line(text, find) is None


def test_values_are_read_as_the_form_reads_them() -> None:
    text = "/shop.open name='My shop' pieces=3 open=No size=\"large\" tags=a tags='b c' password=x"
    typed: dict[str, JSON] = {"name": "My shop", "pieces": 3, "open": False, "size": "large", "tags": ["a", "b c"]}
    assert given_by(text) == {**typed, "password": "x"}
    assert given_by("/shop.open pieces=") == {}
    assert given_by('/shop.open tags:=\'["a\\nb", " "]\'') == {"tags": ["a\nb", " "]}


@pytest.mark.parametrize(
    ("text", "input"),
    [
        ("buy   many things", {"name": "buy many things"}),
        ("buy pieces=3 things", {"name": "buy things", "pieces": 3}),
        ("name=a buy 'many  things'", {"name": "a", "wish": "buy many  things"}),
        ("\n Dear all,\n\nit's 'open\n a=b", {"name": " Dear all,\n\nit's 'open\n a=b"}),
        ("name=a First.\nSecond.", {"name": "a", "wish": "First.\nSecond."}),
        ("'pieces=3' \"a=b\" is https://example.org/?q=1", {"name": "pieces=3 a=b is https://example.org/?q=1"}),
        ("name='First.\nSecond.' Third.", {"name": "First.\nSecond.", "wish": "Third."}),
        ("name=-rf -- --wait", {"name": "-rf", "wish": "-- --wait"}),
        ("don\\'t", {"name": "don't"}),
        ("name=a\r\nb", {"name": "a", "wish": "b"}),
    ],
)
def test_the_rest_is_free_text_of_the_first_field_of_text_that_is_not_named(text: str, input: dict[str, JSON]) -> None:
    assert given_by(f"/shop.open {text}") == input


def test_each_problem_is_told_with_its_field_and_what_was_typed_stays_in_the_form() -> None:
    text = "/shop.open pieces=many size=huge nme=x name=a name=b open:=tru"
    assert set(wrong(text)) == {"pieces", "size", "nme", "name", "open"}
    assert wrong(text)["nme"][0].startswith("There is no such field. There are: password, size, name,")
    assert wrong(text)["name"] == ["This is given twice."]
    typed = {each.name: (each.kind, each.text) for each in read(text).form.fields}
    assert (typed["pieces"], typed["name"]) == (("number", "many"), ("line", "a"))
    assert typed["open"] == ("json", "tru")


def test_free_text_that_no_field_takes_is_a_problem() -> None:
    assert wrong("/shop.open name=a wish=b more text") == {
        "": ["No field takes the text 'more text': write field=value."]
    }


def test_free_text_of_several_lines_is_a_field_of_several_lines() -> None:
    form = read("/shop.open First.\nSecond.").form
    (field,) = (each for each in form.fields if each.name == "name")
    assert (field.kind, field.text) == ("text", "First.\nSecond.")


@pytest.mark.parametrize("text", ["don't", 'name="a', "name='a\nb", "a 'b\nc'", "name=a\\", "x \\\nb"])
def test_a_quote_that_is_not_closed_is_refused(text: str) -> None:
    with pytest.raises(BadLine, match=r"The line (has a quote|ends with a backslash)"):
        read(f"/shop.open {text}")
