"""What `docs/extending.md` shows works as it stands: every block of code of the page is run."""

from __future__ import annotations

import re
from pathlib import Path

from tests.agentsite.processes import run, variables
from tests.docs.apps import STOCK


def test_every_block_of_the_page_belongs_to_a_file() -> None:
    assert len(re.findall(r"^```(\w+)$", STOCK.text, re.MULTILINE)) == len(STOCK.blocks) == 10


def test_the_files_are_those_of_its_tree(tmp_path: Path) -> None:
    STOCK.build(tmp_path)
    tree = STOCK.text.partition("```\nstock/\n")[2].partition("```")[0].split()
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {
        name.rpartition("/")[2] for name in tree if not name.endswith("/")
    }


def test_its_own_tests_pass_without_a_site(tmp_path: Path) -> None:
    told = STOCK.tests(tmp_path)
    assert "6 passed" in told, told


def test_mypy_is_content_with_it(tmp_path: Path) -> None:
    told = STOCK.types(tmp_path)
    assert "Success: no issues found" in told, told


def test_the_site_lists_what_it_brings(tmp_path: Path) -> None:
    environment = variables(tmp_path / "data", **STOCK.build(tmp_path))
    run("manage.py", "migrate", environment=environment)
    told = run("manage.py", "agents", environment=environment)
    for name in ("stock.count", "stock.order", "basket.add", "basket.empty", "basket", "stock.restock", "supplier"):
        assert name in told.stdout, told.stdout + told.stderr
