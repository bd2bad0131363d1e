"""What `docs/workflows.md` shows works as it stands: every block of code of the page is run."""

from __future__ import annotations

import re
from inspect import signature
from pathlib import Path

from agents.engine.runtime.policy import Context
from tests.agentsite.processes import run, variables
from tests.docs.apps import CORNER
from workflows import Flow, workflow


def test_every_block_of_the_page_belongs_to_a_file() -> None:
    assert len(re.findall(r"^```(\w+)$", CORNER.text, re.MULTILINE)) == len(CORNER.blocks) == 7


def test_its_first_block_is_ten_lines() -> None:
    name, code = CORNER.blocks[0]
    assert name == "corner/workflows.py"
    assert len(list(filter(str.strip, code.splitlines()))) <= 10


def test_its_own_tests_pass_without_a_site(tmp_path: Path) -> None:
    told = CORNER.tests(tmp_path)
    assert "5 passed" in told, told


def test_mypy_is_content_with_it(tmp_path: Path) -> None:
    told = CORNER.types(tmp_path)
    assert "Success: no issues found" in told, told


def test_a_site_lists_what_it_brings(tmp_path: Path) -> None:
    environment = variables(tmp_path / "data", **CORNER.build(tmp_path))
    told = run("manage.py", "agents", environment=environment)
    for name in ("corner.greet", "corner.letter", "corner.orders", "corner.send"):
        assert name in told.stdout, told.stdout + told.stderr


def test_the_table_of_the_decorator_names_every_argument_with_its_default() -> None:
    table = CORNER.text.partition("## The decorator\n")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", table, re.MULTILINE))
    arguments = {name: each.default for name, each in signature(workflow).parameters.items() if name != "name"}
    assert rows.keys() == arguments.keys()
    plain = {name: default for name, default in arguments.items() if isinstance(default, bool | int | float)}
    assert {name: rows[name] for name in plain} == {name: f"`{default}`" for name, default in plain.items()}


def test_what_it_says_of_the_flow_is_there() -> None:
    said = set(re.findall(r"\bflow\.(\w+)\(", CORNER.text)) | {"ask", "show", "file", "now", "uuid", "random"}
    assert [name for name in said if not hasattr(Flow, name)] == []
    added = {name for name in vars(Flow) if not name.startswith("_")} - set(dir(Context))
    assert added == {"workflow"}  # and `input`, which is no method: there is no second set of them
