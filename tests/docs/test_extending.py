"""What `docs/extending.md` shows works as it stands: every block of code of the page is run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.agentsite.processes import ROOT, run, variables
from tests.docs.stock import NAMED, PAGE, build


def test_every_block_of_the_page_belongs_to_a_file() -> None:
    blocks = re.findall(r"^```(\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(blocks) == len(NAMED.findall(PAGE.read_text(encoding="utf-8"))) == 10


def test_the_files_are_those_of_its_tree(tmp_path: Path) -> None:
    build(tmp_path)
    tree = PAGE.read_text(encoding="utf-8").partition("```\nstock/\n")[2].partition("```")[0].split()
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {
        name.rpartition("/")[2] for name in tree if not name.endswith("/")
    }


def test_its_own_tests_pass_without_a_site(tmp_path: Path) -> None:
    """In an empty folder, with nothing of Django set up."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([build(tmp_path)["PYTHONPATH"], str(ROOT)])}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "-W", "error"]
    own = subprocess.run(
        [*command, "stock/tests.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert "6 passed" in own.stdout, own.stdout + own.stderr


def test_mypy_is_content_with_it(tmp_path: Path) -> None:
    """In its strict mode, with Agentsite as an installed package: what it exports has types."""
    build(tmp_path)
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file="]
    environment = {**os.environ, "MYPYPATH": str(ROOT)}
    command += [f"--cache-dir={tmp_path}/cache", "stock"]
    checked = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_the_site_lists_what_it_brings(tmp_path: Path) -> None:
    environment = variables(tmp_path / "data", **build(tmp_path))
    run("manage.py", "migrate", environment=environment)
    told = run("manage.py", "agents", environment=environment)
    for name in ("stock.count", "stock.order", "basket.add", "basket.empty", "basket", "stock.restock", "supplier"):
        assert name in told.stdout, told.stdout + told.stderr
