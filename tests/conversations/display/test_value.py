"""A value on a card: no two values that may stand at its place look the same."""

from __future__ import annotations

import json
from enum import StrEnum
from itertools import combinations
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from agents import discovery
from agents.engine.ledger import JSON
from agents.engine.tools.tool import ToolCall, tool
from conversations.display.call import display_call


class Size(StrEnum):
    """A choice of words."""

    FIVE = "5"


class Inner(BaseModel):
    """A structure."""

    text: str = ""


class Input(BaseModel):
    """Fields of every kind."""

    text: str = ""
    open: Any = None
    either: str | int | list[str] = ""
    maybe: str | None = None
    texts: list[str] = []
    some: list[str] | None = None
    size: Size = Size.FIVE
    mixed: Literal["5", 5, True] = 5
    inner: Inner = Inner()


@tool("show.it")
def show(call: ToolCall[Input]) -> str:
    """Show it."""
    return ""


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "installed", lambda: discovery.Found((show,), ()))


def shown(name: str, value: JSON, tool: str = "show.it") -> str:
    (field,) = display_call(tool, {name: value}).fields
    return field.text


LISTS: list[JSON] = [
    [],
    [""],
    ["a"],
    ["5"],
    ["a", "b"],
    ["a\nb"],
    ["a", "", "b"],
    ["[]"],
    ["[", '  "a"', "]"],
    ["null"],
]
TEXTS: list[JSON] = [
    "", "a", "a\nb", "5", '"5"', '"a"', "true", "null", "[]", "{}", '["a", "b"]', '[\n  "a",\n  "b"\n]', " 5 ", "a\\nb",
    "9" * 5_000, "[" * 5_000,
]  # fmt: skip
OTHERS: list[JSON] = [5, 5.5, -1, True, False, None, {}, {"a": "5"}, {"a": 5}, [5], ["5", 5], [["a"]], [None]]


@pytest.mark.parametrize(("name", "tool"), [("open", "show.it"), ("unknown", "show.it"), ("text", "not.installed")])
def test_where_anything_may_stand_no_two_look_the_same(name: str, tool: str) -> None:
    for one, other in combinations([*LISTS, *TEXTS, *OTHERS], 2):
        assert shown(name, one, tool) != shown(name, other, tool), (one, other)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("either", [*TEXTS, *LISTS, 5, -1]),
        ("maybe", [*TEXTS, None]),
        ("texts", LISTS),
        ("some", [*LISTS, None]),
        ("mixed", ["5", 5, True]),
    ],
)
def test_what_a_field_takes_is_told_apart(name: str, values: list[JSON]) -> None:
    for one, other in combinations(values, 2):
        assert shown(name, one) != shown(name, other), (one, other)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_plain_where_only_texts_may_stand(text: str) -> None:
    assert shown("text", text) == text
    assert shown("size", text) == text


def test_what_cannot_be_mistaken_is_plain() -> None:
    assert shown("open", "Dear all,\n\nsee you.") == "Dear all,\n\nsee you."
    assert shown("maybe", "5") == "5"
    assert shown("texts", ["ann", "bob"]) == shown("some", ["ann", "bob"]) == "ann\nbob"
    assert shown("either", ["ann", "bob"]) == '[\n  "ann",\n  "bob"\n]'
    assert json.loads(shown("inner", {"text": "\u00e9\u202e"})) == {"text": "\u00e9\u202e"}


def test_what_has_lines_takes_the_whole_width() -> None:
    blocks = {field.name: field.block for field in display_call("show.it", {"text": "a", "open": "a\nb"}).fields}
    assert blocks == {"text": False, "open": True}
