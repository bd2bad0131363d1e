"""Tables: what each cell means, and what is wrong with one in words that say where."""

from __future__ import annotations

import csv
from io import StringIO
from typing import Any, Literal

import pytest
from django.contrib.auth.models import User
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.ledger import JSON, canonical
from tests.workflows.batches import Parcel, key, parcel
from tests.workflows.shop import SHOP
from workflows import Flow, workflow
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
        ('item\n"paper', "not a valid table"),
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
    assert "3 cells for 2 columns" in table.lines[0].errors[""][0]


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


VALUES = {
    "item": st.text(max_size=20),
    "days": st.integers(-5, 40),
    "size": st.sampled_from(["small", "large"]),
    "gift": st.booleans(),
    "labels": st.lists(st.text(st.sampled_from("ab;, \n\"\\'"), max_size=4) | st.text(max_size=5), max_size=3),
    "map": st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    "numbers": st.lists(st.integers(), max_size=3),
    "answers": st.lists(st.sampled_from(["yes", "no; never"]), max_size=2, unique=True),
}


class Everything(Parcel):
    numbers: list[int] = []
    answers: list[Literal["yes", "no; never"]] = []


@workflow("shop.everything", title="Everything", category=SHOP)
async def everything(flow: Flow[Everything]) -> None:
    """Takes everything."""


@given(st.sampled_from(sorted(VALUES)), st.data())
def test_a_cell_is_read_as_its_value_or_is_its_json(name: str, data: st.DataObject) -> None:
    """In a column of its name; below `name:` every value can be read again."""
    value = data.draw(VALUES[name])
    column = next(each for each in columns_of(everything) if each.name == name)
    cell = column.cell(value)
    if cell == canonical(value) or not cell:
        return
    others = {} if name == "item" else {"item": "paper"}
    table = read_table(everything, written([[name, *others], [cell, *others.values()]]), ANN)
    (line,) = table.lines
    if not line.errors:
        assert canonical(line.input[name]) == canonical(value)


@pytest.mark.parametrize(
    ("name", "value", "cell"),
    [
        ("labels", ["a;b"], "a;b\n"),
        ("labels", ["a", "b;c"], "a\nb;c"),
        ("labels", ["a\nb"], '["a\\nb"]'),
        ("numbers", [1, 2], "1\n2"),
        ("answers", ["no; never"], "no; never\n"),
    ],
)
def test_several_values_in_a_cell(name: str, value: JSON, cell: str) -> None:
    assert next(each for each in columns_of(everything) if each.name == name).cell(value) == cell


@given(st.text(st.sampled_from("=+-@;,\t\n\r\"' a1\u200b\ufeff"), max_size=8) | st.text(max_size=20))
def test_no_cell_of_the_results_is_a_formula_however_cells_are_separated(text: str) -> None:
    cell = safe(text)
    assert cell.replace("'", "") == text.replace("'", "")
    for separator in ",;\t":
        for row in csv.reader(StringIO(written([["1", cell]]), newline=""), delimiter=separator):
            for each in row:
                shown = each.strip("\u200b\ufeff \t\r\n")
                assert NUMBER.fullmatch(each) or not shown.startswith(("=", "+", "-", "@"))


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1+1", "@SUM(A1)", "\uff1d1", "\u200b=1", "\ufeff=1", " =1"])
def test_a_formula_is_made_a_text(cell: str) -> None:
    assert safe(cell) == f"'{cell}"
    assert safe(f"a;{cell}\t5") == f"a;'{cell}\t5"


def test_a_number_stays_one() -> None:
    assert [safe(cell) for cell in ("-5", "12", "-0.5")] == ["-5", "12", "-0.5"]
