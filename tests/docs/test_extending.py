"""What `docs/extending.md` shows works as it stands: every block of code of the page is run."""

from __future__ import annotations

import re
from pathlib import Path

from tests.agentsite.processes import ROOT, run, variables
from tests.docs.stock import NAMED, PAGE, build


def test_every_block_of_the_page_belongs_to_a_file() -> None:
    blocks = re.findall(r"^```(\w+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(blocks) == len(NAMED.findall(PAGE.read_text(encoding="utf-8"))) == 8


def test_the_files_are_those_of_its_tree(tmp_path: Path) -> None:
    build(tmp_path)
    tree = PAGE.read_text(encoding="utf-8").partition("```\nstock/\n")[2].partition("```")[0].split()
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {
        name.rpartition("/")[2] for name in tree if not name.endswith("/")
    }


def test_its_own_tests_pass_on_a_site_that_has_it(tmp_path: Path) -> None:
    """They import it, find it in the registry, and call its tools."""
    environment = variables(tmp_path / "data", **build(tmp_path), DJANGO_SETTINGS_MODULE="agentsite.settings")
    file = str(tmp_path / "stock" / "tests.py")
    own = run("-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={ROOT}", file, environment=environment)
    assert "5 passed" in own.stdout, own.stdout + own.stderr


def test_the_site_lists_what_it_brings(tmp_path: Path) -> None:
    environment = variables(tmp_path / "data", **build(tmp_path))
    run("manage.py", "migrate", environment=environment)
    told = run("manage.py", "agents", environment=environment)
    for name in ("stock.count", "stock.order", "stock.report", "basket.add", "basket"):
        assert name in told.stdout, told.stdout + told.stderr
