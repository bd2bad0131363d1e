"""docs/requirements.md is whole: each number has one line, and what the lines and the tests name is there."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "requirements.md"
NUMBERS = [*(f"S{number}" for number in range(1, 131)), *(f"R{number}" for number in range(1, 27))]


class Row(NamedTuple):
    """A line of the document's tables."""

    number: str
    what: str
    where: str


def rows() -> list[Row]:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if re.match(r"\| ?[SR]\d", line)]
    return [Row(*line) for line in cells]


def docstrings() -> Iterator[tuple[str, str]]:
    """Each docstring of the tests, with its place."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for file in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, kinds) and (said := ast.get_docstring(node)):
                yield f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}", said


def named(where: str) -> list[str]:
    return re.findall(r"`([^`]+)`", where)


def test_each_number_has_one_line() -> None:
    assert Counter(row.number for row in rows()) == Counter(NUMBERS)


def test_each_line_says_what_and_where() -> None:
    assert [row.number for row in rows() if not row.what.endswith(".")] == []
    assert [row.number for row in rows() if not named(row.where) and row.where != "to come"] == []


def test_what_a_line_names_is_there() -> None:
    missing = {(row.number, path) for row in rows() for path in named(row.where) if not (ROOT / path).is_file()}
    assert missing == set()


def test_a_number_that_a_test_cites_has_a_line() -> None:
    cited = {(number, place) for place, said in docstrings() for number in re.findall(r"\b[SR]\d{1,3}\b", said)}
    assert {(number, place) for number, place in cited if number not in NUMBERS} == set()
    assert len(cited) > 100  # they are found at all


def test_what_a_test_cites_is_not_all_to_come() -> None:
    cited = {number for _, said in docstrings() for number in re.findall(r"\b[SR]\d{1,3}\b", said)}
    assert {row.number for row in rows() if row.where == "to come"} & cited == set()
