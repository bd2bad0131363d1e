"""`manage.py startagentapp` writes an app that works as it stands, without a site and on one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agentsite.processes import ROOT, run, variables


def start(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    """Run it where the app is to be written."""
    environment = variables(folder / "data")
    command = [sys.executable, str(ROOT / "manage.py"), "startagentapp", name]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def office(tmp_path: Path) -> Path:
    """The folder of a new app."""
    written = start(tmp_path, "office")
    assert "AGENTSITE_APPS=office" in written.stdout, written.stderr
    return tmp_path / "office"


def test_its_own_tests_pass_and_mypy_is_content(office: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(office.parent), str(ROOT)]), "MYPYPATH": str(ROOT)}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:asyncio", "-W", "error", "office/tests.py"]
    types = ["-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", "--cache-dir=cache", "office"]
    for command in (tests, types):
        told = subprocess.run(
            [sys.executable, *command], cwd=office.parent, env=environment, capture_output=True, text=True, check=False
        )
        assert told.returncode == 0, told.stdout + told.stderr


def test_a_site_has_what_it_brings(office: Path, tmp_path: Path) -> None:
    environment = variables(tmp_path / "site", PYTHONPATH=str(office.parent), AGENTSITE_APPS="office")
    told = run("manage.py", "agents", environment=environment)
    for name in ("office.note", "office.forget", "office.minutes", "office.clerk", "office.focus", "office.notebook"):
        assert name in told.stdout, told.stdout + told.stderr
    assert "office.notes" in told.stdout


def test_its_workflow_is_in_its_category_on_a_site(office: Path, tmp_path: Path) -> None:
    environment = variables(tmp_path / "site", PYTHONPATH=str(office.parent), AGENTSITE_APPS="office")
    code = """
from workflows import discovery
for each in discovery.installed().values():
    print(each.category.id, each.category.name, each.name, each.title, sep=": ")
"""
    told = run("manage.py", "shell", "--no-imports", "-c", code, environment=environment)
    assert "office: Office: office.notes: Write notes down" in told.stdout.splitlines(), told.stdout + told.stderr
    assert "projects: Projects: project.create: Create a project" in told.stdout.splitlines()


@pytest.mark.parametrize(("name", "why"), [("my-app", "not a valid app name"), ("json", "conflicts with the name")])
def test_a_name_that_cannot_be_is_refused(tmp_path: Path, name: str, why: str) -> None:
    refused = start(tmp_path, name)
    assert refused.returncode == 1
    assert why in refused.stderr
    assert "Traceback" not in refused.stderr


def test_nothing_is_written_over(office: Path) -> None:
    (office / "tools.py").write_text("MINE = True\n")
    refused = start(office.parent, "office")
    assert refused.returncode == 1
    assert (office / "tools.py").read_text() == "MINE = True\n"
