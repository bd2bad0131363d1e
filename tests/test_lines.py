"""Limits of size: how long a line of a template, style or script is, and how long a Python module is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
APPS = ("agents", "agentsite", "bench", "conversations", "workflows")
CHARACTERS_MOST = 160
"""Of a line. ruff sees to those of Python."""
LINES_MOST = {**dict.fromkeys(APPS, 400), "tests": 800}
"""Of a module, by the folder it is in."""


def files(folders: tuple[str, ...], *patterns: str) -> Iterator[Path]:
    for folder in folders:
        for pattern in patterns:
            yield from (ROOT / folder).rglob(pattern)


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("pattern", ["*.html", "*.txt", "*.css", "*.js"])
def test_no_line_of_a_template_a_style_or_a_script_is_too_long(pattern: str) -> None:
    found = list(files(("templates", *APPS), pattern))
    long = [
        f"{file.relative_to(ROOT)}:{number}"
        for file in found
        for number, line in enumerate(lines(file), 1)
        if len(line) > CHARACTERS_MOST
    ]
    assert long == []
    assert found  # they are looked at at all


@pytest.mark.parametrize("folder", LINES_MOST)
def test_no_module_is_too_long(folder: str) -> None:
    """Migrations are left out: Django writes them."""
    found = [file for file in files((folder,), "*.py") if file.parent.name != "migrations"]
    assert [str(file.relative_to(ROOT)) for file in found if len(lines(file)) > LINES_MOST[folder]] == []
    assert found
