"""The workflow that sets up a project: one card shows every file, nothing is written over, and the tests run."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from agents.engine.errors import ToolError
from agents.engine.outputs.kinds import ToolOutput
from agents.engine.schema import problems
from agents.engine.tools.tool import Risk, ToolCall, tool
from agents.testing import Trial, Trials, TrialServices, trials
from workflows import discovery
from workflows.shipped.commands import TESTS
from workflows.shipped.project.kinds import KINDS, Project
from workflows.shipped.project.tools import check_folder, write_project
from workflows.shipped.project.workflows import CreateProject, create_project

__all__ = ["trials"]  # a fixture

EXIT = {"code": 0}
RAN: list[str] = []
GATED = (["2"], ["4"])
"""The paths of its two gates: what it writes, and the command that runs the tests."""


class Command(BaseModel):
    command: str


@tool("shell.run", risk=Risk.HIGH)
def shell(call: ToolCall[Command]) -> dict[str, Any]:
    """Pretends to run a command."""
    RAN.append(call.input.command)
    return {"stdout": "", "stderr": "", "exit": EXIT["code"], "seconds": 0.1}


TOOLS = (check_folder, write_project, shell)


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()
    EXIT["code"] = 0


def start(trials: Trials, **input: Any) -> Trial:
    return trials.run(create_project, tools=TOOLS, **{"name": "Corner Shop"} | input)


def written(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


PACKAGE = [
    "corner-shop/README.md",
    "corner-shop/corner_shop/__init__.py",
    "corner-shop/corner_shop/receipt.py",
    "corner-shop/tests/__init__.py",
    "corner-shop/tests/test_receipt.py",
]


def test_it_ships() -> None:
    assert discovery.installed()["project.create"] is create_project


def test_one_card_shows_every_file_and_nothing_is_written_before_it_is_approved(trials: Trials) -> None:
    workspace = trials.services.workspace()
    trial = start(trials, description="Sells tea.")
    (asked,) = trial.waiting.values()
    assert asked.facts[0].startswith("Creates the folder corner-shop with 5 files, ")
    assert asked.change
    assert re.findall(r"^===== (.+) =====$", asked.change.after, re.MULTILINE) == PACKAGE
    assert "# Corner Shop\n\nSells tea.\n" in asked.change.after
    assert written(workspace) == []
    trial.approve()
    assert written(workspace) == PACKAGE
    for path in PACKAGE:  # what was shown is what is there
        assert f"===== {path} =====\n{(workspace / path).read_text()}" in asked.change.after
    assert list(trial.waiting) == GATED[1]
    done = {"done": "Set up Corner Shop.", "folder": "corner-shop", "files": PACKAGE, "tests": "They passed."}
    assert trial.approve().value == done
    assert RAN == ["cd corner-shop && python3 -B -m unittest discover -s tests -t ."]
    (archive,) = trial.files
    assert archive.name == "corner-shop.zip"
    assert zipfile.ZipFile(io.BytesIO(archive.content)).namelist() == PACKAGE


@pytest.mark.parametrize("kind", sorted(path.name for path in KINDS.iterdir()))
def test_the_first_tests_of_each_kind_pass(trials: Trials, kind: str) -> None:
    start(trials, name="O'Hara & Söhne", kind=kind, description="<Tea> \"and\" 'cake'.", tests=False).approve()
    folder = trials.services.workspace() / "ohara-sohne"
    command = [sys.executable, "-B", "-W", "error", *TESTS.split()[2:]]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert "Ran 2 tests" in ran.stderr, ran.stderr
    assert ran.returncode == 0, ran.stderr
    assert "{{" not in "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("there", ["folder", "file", "link"])
def test_what_exists_is_refused_before_anybody_is_asked(trials: Trials, there: str) -> None:
    place = trials.services.workspace() / "corner-shop"
    makes: dict[str, Callable[[], object]] = {
        "folder": place.mkdir,
        "file": place.touch,
        "link": lambda: place.symlink_to("/nowhere"),
    }
    makes[there]()
    trial = start(trials)
    with pytest.raises(ToolError, match=r"'corner-shop' exists in this workspace already") as raised:
        _ = trial.value
    assert (raised.value.code, trial.state) == ("exists", "failed")
    assert not any(output.approval for output in trial.outputs if isinstance(output, ToolOutput))


def test_what_appears_in_the_folder_before_it_is_approved_stays(trials: Trials) -> None:
    trial = start(trials)
    readme = trials.services.workspace() / "corner-shop" / "README.md"
    readme.parent.mkdir()
    readme.write_text("Mine.")
    with pytest.raises(ToolError, match="'corner-shop' exists") as raised:
        _ = trial.approve().value
    assert (raised.value.code, readme.read_text()) == ("changed_since", "Mine.")
    assert written(trials.services.workspace()) == ["corner-shop/README.md"]


def test_what_a_person_rejects_is_not_written(trials: Trials) -> None:
    trial = start(trials).reject(reason="Not in this chat.")
    assert (trial.state, trial.value["done"]) == ("completed", "Nothing was set up: Not in this chat.")
    assert trial.value["files"] == []
    assert (written(trials.services.workspace()), RAN, trial.files) == ([], [], [])


def test_a_card_that_nobody_answers_fails_the_run(trials: Trials) -> None:
    """Nobody has said no: whoever started it must learn that it is undecided."""
    trial = start(trials).expire()
    with pytest.raises(ToolError) as raised:
        _ = trial.value
    assert (trial.state, raised.value.code) == ("failed", "expired")


@pytest.mark.parametrize("decided", ["fail", "reject", "unwanted"])
def test_the_project_stands_whatever_becomes_of_its_tests(trials: Trials, decided: str) -> None:
    EXIT["code"] = 1
    trial = start(trials, tests=decided != "unwanted").approve()
    if decided == "fail":
        trial.approve()
    elif decided == "reject":
        trial.reject(reason="No commands.")
    expected = {
        "fail": "They failed, with exit code 1: the output is shown with the command.",
        "reject": "Not run: No commands.",
        "unwanted": "Not run.",
    }
    assert (trial.state, trial.value["tests"]) == ("completed", expected[decided])
    assert written(trials.services.workspace()) == PACKAGE


def test_a_project_without_room_is_not_begun(tmp_path: Path) -> None:
    class Full(TrialServices):
        def space(self) -> Any:
            return super().space().__class__(files=3)

    trial = Trials(Full(folder=tmp_path)).run(create_project, tools=TOOLS, name="Corner Shop").approve()
    with pytest.raises(ToolError) as raised:
        _ = trial.value
    assert (raised.value.code, written(tmp_path)) == ("no_space", [])


def test_a_process_that_dies_anywhere_writes_it_once_and_asks_once(tmp_path: Path) -> None:
    whole = start(Trials()).approve().approve()
    for record in range(1, whole.records + 1):
        RAN.clear()
        folder = tmp_path / str(record)
        folder.mkdir()
        trial = start(Trials(TrialServices(folder=folder), dies_at=record))
        decided = 0
        while trial.state == "waiting":
            (asked,) = trial.waiting.values()
            if asked.ask == "interrupted":
                trial.answer("it_ran")
            else:
                trial.approve()
                decided += 1
        if trial.state == "failed":  # nobody saw the end of the command: whoever is asked says that it ran
            assert RAN == ["cd corner-shop && python3 -B -m unittest discover -s tests -t ."]
        else:
            assert trial.value == whole.value
        assert (decided, written(folder), len(RAN)) == (2, PACKAGE, 1)
        assert [file.name for file in {file.content: file for file in trial.files}.values()] == ["corner-shop.zip"]


def test_an_attempt_that_was_cut_off_is_completed(trials: Trials) -> None:
    """Some of the files are there, as they would be written: the call runs again, and writes the others."""
    trial = start(trials)
    project = Project(name="Corner Shop")
    for path, text in list(project.files.items())[:2]:
        file = trials.services.workspace() / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert trial.approve().approve().state == "completed"
    assert written(trials.services.workspace()) == PACKAGE


@pytest.mark.parametrize(
    ("input", "place", "why"),
    [
        ({"name": "../etc"}, "name", "begin with a letter"),
        ({"name": "a\nb/c"}, "name", "begin with a letter"),
        ({"name": "7 days"}, "name", "begin with a letter"),
        ({"name": ""}, "name", "Enter a value"),
        ({"name": "茶"}, "folder", "no folder can be made of this name"),
        ({"name": "Shop", "folder": "../shop"}, "folder", "lower-case letters a to z"),
        ({"name": "Shop", "folder": "a" * 41}, "folder", "at most 40 characters"),
        ({"name": "Json"}, "folder", "Python has something called 'json' already"),
        ({"name": "Tests"}, "folder", "'tests'"),
        ({"name": "Class"}, "folder", "needs the word"),
        ({"name": "Shop", "kind": "robot"}, "kind", "python-package"),
    ],
)
def test_a_name_that_would_not_do_is_refused_at_its_field(input: dict[str, Any], place: str, why: str) -> None:
    ((where, said),) = problems(CreateProject, input)
    assert where == place
    assert why in said


@pytest.mark.parametrize(
    ("name", "folder"),
    [("Corner Shop", "corner-shop"), ("Café  Über", "cafe-uber"), ("a_b.c", "a-b-c"), ("x" * 60, "x" * 40)],
)
def test_the_folder_is_made_of_the_name(name: str, folder: str) -> None:
    assert Project(name=name).place == folder


def test_a_website_may_be_called_what_a_package_may_not() -> None:
    assert problems(CreateProject, {"name": "Json", "kind": "website"}) == []
