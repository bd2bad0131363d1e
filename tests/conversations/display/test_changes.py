"""What differs between two inputs, field by field, and what is typed into the form of an edit."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, SecretStr

from agents.engine.ledger import JSON
from agents.engine.outputs.change import CHANGE_MOST
from agents.engine.schema import schema_of
from conversations.display.changes import FieldChange, changed_fields, changes_of_call, typed_changes
from conversations.display.schema_form import SchemaForm


class Login(BaseModel):
    name: str
    password: SecretStr


class Mail(BaseModel):
    """An input with a text, a number, a secret, and an object that has one."""

    text: str
    copies: int = 1
    token: SecretStr | None = None
    login: Login | None = None


def told(*changes: FieldChange) -> list[tuple[str, str | None, str | None]]:
    return [(each.name, each.old, each.new) for each in changes]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 1.0}, [("a", "1", "1.0")]),
        ({"a": 1}, {"a": True}, [("a", "1", "true")]),
        ({"a": 5}, {"a": "5"}, [("a", "5", '"5"')]),
        ({"a": None}, {}, [("a", "null", None)]),
        ({"a": ""}, {"a": "x"}, [("a", "", "x")]),
        ({"b": 1}, {"a": 2}, [("a", None, "2"), ("b", "1", None)]),
        ({"a": ["x"]}, {"a": ["x", "y"]}, [("a", '[\n  "x"\n]', '[\n  "x",\n  "y"\n]')]),
    ],
)
def test_fields_are_told_apart_as_exactly_as_they_are_recorded(
    old: dict[str, JSON], new: dict[str, JSON], found: list[Any]
) -> None:
    assert told(*changed_fields(old, new, {})) == found


def test_a_text_of_a_known_field_is_shown_as_it_is() -> None:
    assert told(*changes_of_call("shell.run", {"command": "5"}, {"command": "6"})) == [("command", "5", "6")]


def test_a_short_change_has_its_words_marked() -> None:
    (change,) = changed_fields({"a": "make deploy now"}, {"a": "make check now"}, {})
    old, new = change.sides
    assert change.short
    assert old
    assert new
    assert (old.html, new.html) == ("make <mark>deploy</mark> now", "make <mark>check</mark> now")
    assert FieldChange("a", None, "x").sides[0] is None


def test_the_end_of_the_last_line_is_told_only_where_it_changes() -> None:
    (both,) = changed_fields({"a": "x\ny"}, {"a": "x\nz"}, {})
    (one,) = changed_fields({"a": "x\ny"}, {"a": "x\ny\n"}, {})
    assert not both.short
    for change, ends in ((both, [False, False, False]), (one, [False, True, False])):
        assert change.diff
        assert [row.unended for hunk in change.diff.hunks for row in hunk.rows] == ends


def test_what_is_too_large_is_not_compared() -> None:
    (change,) = changed_fields({"a": "x"}, {"a": "y" * (CHANGE_MOST + 1)}, {})
    assert change.diff is None


def typed(**posted: str) -> list[FieldChange]:
    """What is typed into the form of a mail."""
    given: dict[str, JSON] = {"text": "Dear all,", "copies": 2}
    form = SchemaForm(schema_of(Mail), given, posted or None)
    found = typed_changes(form)
    assert not form.errors, "whoever sends the form is told then"
    return found


def test_what_is_typed_is_compared_with_what_stood_there() -> None:
    names = [field.key for field in SchemaForm(schema_of(Mail), {"text": "", "copies": 2}).fields]
    text, copies, token, login = names
    assert typed() == []
    assert told(*typed(**{text: "Dear Ann,", copies: "2"})) == [("text", "Dear all,", "Dear Ann,")]
    assert told(*typed(**{text: "Dear all,", copies: "3"})) == [("copies", "2", "3")]
    assert told(*typed(**{text: "Dear Ann,", copies: "many"})) == [("text", "Dear all,", "Dear Ann,")]
    assert typed(**{token: "hunter2"}) == []
    assert typed(**{login: "1", f"{login}.json": "x", "json-3": '{"name": "ann", "password": "hunter2"}'}) == []
