"""Tables of CSV files: what is shown of them, and what is said about the rest."""

from __future__ import annotations

import time

import pytest

from conversations.pages.files.tables import read_table


def texts(rows: object) -> list[list[str]]:
    return [[cell.text for cell in row] for row in rows]  # type: ignore[attr-defined]


def test_the_first_row_is_the_heading_and_numbers_stand_on_the_right() -> None:
    table = read_table("Region;Units;Share\nNorth;1.200;4 %\nSouth;-3;\n", cut=False)
    assert table
    assert [cell.text for cell in table.heads] == ["Region", "Units", "Share"]
    assert texts(table.rows) == [["North", "1.200", "4 %"], ["South", "-3", ""]]
    assert ["right" in cell.classes for cell in table.heads] == [False, True, True]
    assert ["right" in cell.classes for cell in table.rows[1]] == [False, True, True]
    assert table.notes == []


@pytest.mark.parametrize("text", ["1,2\n3,4\n", "a,\nb,c\n", "only,this\n"])
def test_a_row_with_numbers_or_gaps_is_no_heading(text: str) -> None:
    table = read_table(text, cut=False)
    assert table
    assert table.heads == []
    assert len(table.rows) == text.count("\n")


def test_it_says_how_many_rows_there_are() -> None:
    text = "Name,Number\n" + "".join(f"row,{number}\n" for number in range(12_345))
    table = read_table(text, cut=False)
    assert table
    assert len(table.rows) == 200
    assert table.rows[-1][1].text == "199"
    assert table.notes == ["200 of 12,345 rows."]
    part = read_table(text, cut=True)
    assert part
    assert part.notes == ["The first 200 rows of a larger table."]


def test_rows_of_different_lengths_are_filled_up() -> None:
    table = read_table("a,b\n1,2,3\n4,5\n", cut=False)
    assert table
    assert texts(table.rows) == [["1", "2", "3"], ["4", "5", ""]]
    assert [cell.text for cell in table.heads] == ["a", "b", ""]


@pytest.mark.parametrize("text", ["", "\n\n\n", f"a,{'x' * 200_000}\n"])
def test_what_cannot_be_read_is_no_table(text: str) -> None:
    assert read_table(text, cut=False) is None


def test_200_000_columns() -> None:
    before = time.process_time()
    table = read_table("\n".join(["1," * 200_000] * 3), cut=False)
    assert time.process_time() - before < 5
    assert table
    assert table.notes == ["30 of 200,001 columns."]
    assert {len(row) for row in table.rows} == {30}


def test_formulas_are_text_and_long_cells_end() -> None:
    table = read_table(f'name,link\n=1+1,"=HYPERLINK(""https://evil.example"")"\nx,{"y" * 9_000}\n', cut=False)
    assert table
    assert texts(table.rows)[0] == ["=1+1", '=HYPERLINK("https://evil.example")']
    assert len(table.rows[1][1].text) == 1_000
