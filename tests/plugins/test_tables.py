"""`csv.summary`: what the columns of a file hold, as people all over the world write one."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from agents.engine.schema import parse
from agents.engine.tools.tool import ToolCall
from agents.plugins.tables.tools import summarize
from tests.plugins.calls import Desk
from tests.plugins.test_show import called


def told(desk: Desk, content: str | bytes) -> list[str]:
    """What the model reads of a file with this content."""
    (desk.workspace / "a.csv").write_bytes(content.encode() if isinstance(content, str) else content)
    return called(summarize, desk, path="a.csv")[0].splitlines()


def test_every_kind_of_column_is_told(desk: Desk) -> None:
    lines = told(
        desk,
        "invoice,supplier,day,amount,note,state\n"
        "2025-0713,Kessler,2025-07-18,640.00,,ok\n"
        '2025-0801,"Ardea, Ltd",2025-08-04,"1,918.40",,12\n'
        "2025-0866,Kessler,2025-08-22,-212.00,,13\n",
    )
    assert lines == [
        "a.csv: 3 rows below the header; 6 columns, separated by ','.",
        "invoice: text, 3 filled, 3 distinct (2025-0713, 2025-0801, 2025-0866)",
        "supplier: text, 3 filled, 2 distinct (Ardea, Ltd, Kessler)",
        "day: date, 3 filled, 2025-07-18 to 2025-08-22",
        "amount: number, 3 filled, -212.00 to 1,918.40, mean 782.13, total 2,346.40",
        "note: empty, 0 filled, 3 empty",
        "state: mixed, 3 filled, 2 of them numbers, 12 to 13, mean 12.50, total 25",
    ]


def test_people_see_the_same_as_a_table(desk: Desk) -> None:
    (desk.workspace / "a.csv").write_text("name,amount\na,1.50\nb,\n")
    _, call = called(summarize, desk, path="a.csv")
    (step,) = call.emitted
    assert step.payload["widget"] == "table"
    assert step.payload["data"]["title"] == "a.csv: 2 rows, 2 columns"
    assert step.payload["data"]["rows"] == [
        ["name", "text", 2, 0, None, None, None, None, "2"],
        ["amount", "number", 1, 1, "1.50", "1.50", "1.50", "1.50", "1"],
    ]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("a;b\nx;1.918,40\ny;640,00\n", "b: number, 2 filled, 640.00 to 1,918.40, mean 1,279.20, total 2,558.40"),
        ("a;b\nx;1,5\ny;2,25\n", "b: number, 2 filled, 1.5 to 2.25, mean 1.88, total 3.75"),
        ("a;b\nx;1.918\n", "b: number, 1 filled, 1,918 to 1,918, mean 1,918.00, total 1,918"),
        ('a,b\nx,"1,918"\n', "b: number, 1 filled, 1,918 to 1,918, mean 1,918.00, total 1,918"),
        ("a\tb\nx\t1e3\n", "b: number, 1 filled, 1,000 to 1,000, mean 1,000.00, total 1,000"),
        ("a|b\nx|7\n", "b: number, 1 filled, 7 to 7, mean 7.00, total 7"),
        ("a,b\r\nx,7\r\n", "b: number, 1 filled, 7 to 7, mean 7.00, total 7"),
        ("a,b\rx,7\r", "b: number, 1 filled, 7 to 7, mean 7.00, total 7"),
        ('a,b\n"x\ny",7\n', "b: number, 1 filled, 7 to 7, mean 7.00, total 7"),
        ("a,b\nx,nan\ny,inf\n", "b: text, 2 filled, 2 distinct (inf, nan)"),
        ("a,b\nx,1e99\n", "b: number, 1 filled, 1e+99 to 1e+99, mean 1e+99, total 1e+99"),
    ],
)
def test_delimiters_and_numbers_of_all_countries(desk: Desk, content: str, line: str) -> None:
    assert told(desk, content)[2] == line


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_letters_of_all_programs(desk: Desk, encoding: str) -> None:
    lines = told(desk, "name,n\nJörg,1\n".encode(encoding))
    assert lines[1] == "name: text, 1 filled, 1 distinct (Jörg)"
    assert lines[3:] == (["[It is not UTF-8 and was read as Windows-1252.]"] if encoding == "cp1252" else [])


def test_a_file_without_a_heading(desk: Desk) -> None:
    lines = told(desk, "a,1\nb,2\n")
    assert lines[0] == "a.csv: 2 rows, no header; 2 columns, separated by ','."
    assert lines[2] == "column 2: number, 2 filled, 1 to 2, mean 1.50, total 3"


def test_rows_of_another_width_are_counted(desk: Desk) -> None:
    lines = told(desk, "a,b\n1,2\n3\n4,5,6\n\n7,8\n")
    assert lines[2] == "b: number, 3 filled, 1 empty, 2 to 8, mean 5.00, total 15"
    assert lines[-1] == "[Rows with more or fewer cells than the first line: 2.]"


def test_many_columns_and_long_texts_are_cut(desk: Desk) -> None:
    lines = told(desk, ",".join("c" * 50 + str(n) for n in range(100)) + "\n" + ",".join("x" * 50 for _ in range(100)))
    assert len("\n".join(lines)) < 16_000  # what a model is shown of one result
    assert len(lines) == 62
    assert lines[-1] == "[Only the first 60 columns are summarized.]"


def test_so_many_different_values_are_not_all_kept(desk: Desk) -> None:
    assert "10,000 or more distinct" in told(desk, "a\n" + "".join(f"v{n}\n" for n in range(10_001)))[1]


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", "empty"), (b"\n\n", "empty"), (b"PK\x03\0\0", "binary"), (b'a,b\n"' + b"x" * 200_000, "not_csv")],
)
async def test_what_is_no_csv_is_refused(desk: Desk, content: bytes, code: str) -> None:
    (desk.workspace / "a.csv").write_bytes(content)
    assert (await desk.refused(summarize, path="a.csv")).code == code


async def test_a_row_of_too_many_cells_is_no_table(desk: Desk) -> None:
    """It is refused by its first row, and the model reads what to do; one of a thousand columns is told."""
    (desk.workspace / "a.csv").write_text("a," * 1_000)
    refused = await desk.refused(summarize, path="a.csv")
    assert refused.code == "too_many_columns"
    assert "1,001 cells" in str(refused)
    assert "write a file with only the columns that you need" in str(refused)
    lines = told(desk, "a," * 999 + "b\n")
    assert lines[0] == "a.csv: 0 rows below the header; 1000 columns, separated by ','."
    assert len(lines) == 62


def test_a_wide_file_is_held_by_the_columns_that_are_told(desk: Desk) -> None:
    """A thousand columns of different values take as much room as sixty."""
    content = "".join(",".join(f"{row:x}{cell:x}" for cell in range(1_000)) + "\n" for row in range(300))
    tracemalloc.start()
    try:
        told(desk, content)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(content)


async def test_nothing_outside_the_workspace_is_read(desk: Desk) -> None:
    (desk.workspace / "link.csv").symlink_to(desk.outside / "secret.key")
    for path in ("link.csv", "../../data/secret.key", str(desk.outside / "secret.key"), "none.csv"):
        assert (await desk.refused(summarize, path=path)).code in ("link", "bad_path", "not_found")


async def test_a_file_that_is_too_large_is_refused_unread(desk: Desk) -> None:
    with (desk.workspace / "big.csv").open("wb") as stream:
        stream.truncate(4 * 2**30)
    assert (await desk.refused(summarize, path="big.csv")).code == "too_large"


def test_a_table_of_any_shape_is_one_that_can_be_shown(desk: Desk) -> None:
    """What is emitted is a table by its own rules, however odd the file."""
    (desk.workspace / ("x" * 200 + ".csv")).write_text('"a\n\u202eb",,""\n1,"' + "y" * 900 + '",\n')
    call: ToolCall[Any] = ToolCall(
        summarize.name,
        parse(summarize.input, {"path": "x" * 200 + ".csv"}),
        user=1,
        services=desk.services,
        path="1/0",
    )
    assert "no header" in summarize.function(call)
    assert len(call.emitted[0].payload["data"]["rows"]) == 3
