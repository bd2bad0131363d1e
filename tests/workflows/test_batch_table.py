"""Tables: what each cell means, and what is wrong with one in words that say where."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.ledger import JSON, canonical
from tests.workflows.batches import key, parcel
from workflows.batches.standing import NUMBER, safe
from workflows.batches.table import LINES_MOST, TEXT_MOST, Table, columns_of, read_inputs, read_table, written

ANN = User(username="ann")


def read(text: str) -> Table:
    return read_table(parcel, text, ANN)


def inputs(text: str) -> list[dict[str, JSON]]:
    table = read(text)
    assert (table.problems, [line.errors for line in table.wrong]) == ([], [])
    return [{name: value for name, value in each.items() if name != "labels" or value} for each in table.inputs]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("item\npaper\npens", [{"item": "paper"}, {"item": "pens"}]),
        ("Item,Days on the way\npaper,3", [{"item": "paper", "days": 3}]),
        ("\ufeff ITEM ;size\r\npaper;Large\r\n", [{"item": "paper", "size": "large"}]),
        ("item\tgift\npaper\tTRUE\npens\tno\n", [{"item": "paper", "gift": True}, {"item": "pens", "gift": False}]),
        ("item,labels\npaper,this; that", [{"item": "paper", "labels": ["this", "that"]}]),
        ('item,labels\npaper,"this; all\nthat"', [{"item": "paper", "labels": ["this; all", "that"]}]),
        ('item,labels:\npaper,"[""a;b""]"', [{"item": "paper", "labels": ["a;b"]}]),
        ('item,map\npaper,"{""a"": 1}"', [{"item": "paper", "map": {"a": 1}}]),
        ('item:\n"""3"""\n', None),
        ('item:\n"""33"""\n', [{"item": "33"}]),
        ('item\n"two\nlines, with a comma"\n', [{"item": "two\nlines, with a comma"}]),
        ("item,,\npaper,,\n,,\npens,,", [{"item": "paper"}, {"item": "pens"}]),
    ],
)
def test_a_cell_means_what_one_would_type_into_the_form(text: str, wanted: list[dict[str, Any]] | None) -> None:
    if wanted is None:
        assert read(text).wrong
    else:
        assert inputs(text) == wanted


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "There is no table yet"),
        ("item", "no lines"),
        ("item\n" + "paper\n" * (LINES_MOST + 1), "at most 100 lines; this one has 101"),
        ("item\n" + "a" * TEXT_MOST, "at most 200,000 characters"),
        ("item,colour\npaper,red", "No field is called 'colour'. There are: item, days,"),
        ("item,Item\npaper,pens", "Two columns are for Item"),
        ("days\n3", "Add a column for Item"),
        ('item\n"paper', "no table"),
    ],
)
def test_a_table_that_cannot_be_read_says_why(text: str, why: str) -> None:
    table = read(text)
    assert why in " ".join(table.problems)
    assert not table.good


def test_each_error_stands_at_its_line_and_column() -> None:
    table = read("item,days,size\npaper,3,small\np,many,huge\npens,99,\n")
    assert [(line.number, sorted(line.errors)) for line in table.wrong] == [
        (2, ["days", "item", "size"]),
        (3, ["days"]),
    ]
    assert table.wrong[0].errors["days"] == ["Enter a whole number."]
    assert not table.good


@pytest.mark.parametrize("row", ["paper,3,pens", ",,paper"])
def test_a_line_with_more_cells_than_names_is_wrong(row: str) -> None:
    table = read(f"item,days\n{row}\n")
    assert "3 cells below 2 names" in table.lines[0].errors[""][0]


def test_a_secret_is_no_column() -> None:
    assert [each.name for each in columns_of(key)] == ["door"]
    assert "No field is called 'password'" in read_table(key, "door,password\nfront,secret1", ANN).problems[0]


def test_inputs_as_json_are_checked_likewise() -> None:
    table = read_inputs(parcel, [{"item": "paper"}, {"item": "pens", "days": "3"}, {"colour": "red"}], ANN)
    assert [(line.number, sorted(line.errors)) for line in table.wrong] == [(2, ["days"]), (3, ["item"])]


TEXTS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs")), min_size=1, max_size=20).filter(
    lambda text: text.strip() == text
)


@given(st.lists(TEXTS.filter(lambda text: len(text) > 1), min_size=1, max_size=5), st.integers(1, 30), st.data())
def test_what_a_table_is_written_of_is_read_again(items: list[str], days: int, data: st.DataObject) -> None:
    """From inputs to cells and back: no text of a cell is taken for a separator, a quote or another value."""
    labels = [data.draw(st.lists(TEXTS, min_size=2, max_size=3)) for _ in items]
    known = {each.name: each for each in columns_of(parcel)}
    rows: list[list[str]] = [["item", "days", "labels"]]
    given = [{"item": item, "days": days, "labels": names} for item, names in zip(items, labels, strict=True)]
    rows += [[known[name].cell(each[name]) for name in rows[0]] for each in given]
    table = read(written(rows))
    if not table.wrong:  # invisible characters are shown first, as in every form
        assert canonical(table.inputs) == canonical(given)


@given(st.text(max_size=20))
def test_no_cell_of_the_results_is_a_formula(text: str) -> None:
    cell = safe(text)
    assert cell.removeprefix("'") == text.removeprefix("'")
    assert NUMBER.fullmatch(cell) or not cell.lstrip()[:1] or cell.lstrip()[0] not in "=+-@"


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\uff1d1"])
def test_a_formula_is_made_a_text(cell: str) -> None:
    assert safe(cell) == f"'{cell}"


def test_a_number_stays_one() -> None:
    assert [safe(cell) for cell in ("-5", "12", "-0.5")] == ["-5", "12", "-0.5"]
