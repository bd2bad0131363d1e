"""The workflow that refactors: a person approves the plan and each change, the tests run, and the changes are shown."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agents.engine.errors import ToolError
from agents.engine.ledger import JSON
from agents.engine.outputs.change import Change
from agents.engine.outputs.kinds import ToolOutput
from agents.engine.schema import problems
from agents.plugins.files.tools import edit_file, list_files, read_file, search_files, write_file
from agents.testing import Trial, Trials, TrialServices, asks, call, trials
from tests.workflows.demo import demo_script
from tests.workflows.test_project_create import EXIT, RAN, shell
from workflows import discovery
from workflows.shipped.commands import TESTS
from workflows.shipped.component.changes import Changes, changes_between
from workflows.shipped.component.tools import TEXT_MOST, read_component
from workflows.shipped.component.workflows import Refactoring, refactor_component
from workflows.shipped.project.kinds import Project

__all__ = ["trials"]  # a fixture

TOOLS = (read_component, list_files, read_file, search_files, write_file, edit_file, shell)
PATH = "shop/shop/receipt.py"


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    RAN.clear()
    EXIT["code"] = 0


@pytest.fixture(autouse=True)
def _shop(trials: Trials) -> None:
    set_up(trials.services.workspace())


def set_up(workspace: Path) -> None:
    """A project, as the other workflow sets it up."""
    for path, text in Project(name="Shop").files.items():
        file = workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def start(trials: Trials, script: Any = demo_script, **input: Any) -> Trial:
    return trials.run(refactor_component, tools=TOOLS, script=script, **{"path": PATH} | input)


def texts(workspace: Path) -> dict[str, str]:
    files = (path for path in workspace.rglob("*") if path.is_file())
    return {path.relative_to(workspace).as_posix(): path.read_text() for path in files}


def changes_of(trial: Trial) -> Changes:
    (shown,) = (output for output in trial.outputs if isinstance(output, Changes))
    return shown


def test_it_ships() -> None:
    assert discovery.installed()["component.refactor"] is refactor_component


def test_the_demo_model_gives_a_repeated_value_a_name(trials: Trials) -> None:
    workspace = trials.services.workspace()
    before = texts(workspace)
    trial = start(trials)
    (plan,) = trial.waiting.values()
    assert plan.reason == "Carry out this plan?"
    (question,) = (each for each in trial.outputs if isinstance(each, ToolOutput) and each.approval == plan)
    step = f"1. In `{PATH}`, give the value `40` the name `WIDTH`, and define it once at the top."
    assert step in question.input["details"]
    trial.approve()
    (change,) = trial.waiting.values()  # a change asks as it does in a chat
    assert change.change
    assert (change.change.path, texts(workspace)) == (PATH, before)
    trial.approve()
    (tests,) = trial.waiting
    assert (texts(workspace)[PATH], RAN) == (change.change.after, [])
    trial.approve(tests)
    assert [f"cd shop && {TESTS}"] == RAN
    assert (trial.state, trial.value["files"], trial.value["tests"]) == ("completed", [PATH], "They passed.")
    assert "I wrote `shop/shop/receipt.py`" in trial.value["done"]
    assert "I am a demo model and do not understand code" in trial.value["done"]
    (diff,) = changes_of(trial).diffs
    assert (diff.path, diff.added, diff.removed) == (PATH, 5, 3)
    (patch,) = trial.files
    assert (patch.name, patch.summary) == ("changes.diff", "1 file changed, 5 lines added, 3 removed.")
    assert "\n+WIDTH = 40\n" in patch.content.decode()
    check = [sys.executable, "-B", *TESTS.split()[2:]]
    assert subprocess.run(check, cwd=workspace / "shop", capture_output=True, check=False).returncode == 0


def test_the_demo_model_renames_a_word_in_every_file(trials: Trials) -> None:
    workspace = trials.services.workspace()
    trial = start(trials, goal="Rename receipt to bill.").approve()
    paths = []
    while (waits := next(iter(trial.waiting.values()))).change:
        paths.append(waits.change.path)
        trial.approve()
    trial.approve()
    assert sorted(paths) == trial.value["files"]
    assert {"shop/tests/test_receipt.py", PATH} <= set(paths)
    assert "def bill(title" in texts(workspace)[PATH]
    assert " receipt(" not in "".join(texts(workspace).values())
    assert sorted(change.path for change in changes_of(trial).files) == sorted(paths)


@pytest.mark.parametrize(
    ("goal", "path", "why"),
    [
        ("Rename cart to basket.", PATH, "Nothing is called `cart` here"),
        ("Rename line to receipt.", PATH, "has something called `receipt` already"),
        ("Rename line to class.", PATH, "`class` cannot be a name in Python"),
        ("Make it better.", "shop/shop/__init__.py", "I found nothing to do in `shop/shop/__init__.py`. I know three"),
        ("Make it better.", "shop/shop", "Name one file: I cannot plan for a folder."),
    ],
)
def test_the_demo_model_says_what_it_cannot_do(trials: Trials, goal: str, path: str, why: str) -> None:
    before = texts(trials.services.workspace())
    trial = start(trials, goal=goal, path=path)
    assert (trial.state, trial.value["files"]) == ("completed", [])
    assert why in trial.value["done"]
    assert texts(trials.services.workspace()) == before


def test_the_demo_model_takes_the_name_that_a_person_gives(trials: Trials) -> None:
    trial = start(trials, goal="Extract `40` as LINE_WIDTH").approve().approve().approve()
    assert "\nLINE_WIDTH = 40\n" in texts(trials.services.workspace())[PATH]
    assert trial.state == "completed"


def test_a_plan_that_is_rejected_changes_nothing(trials: Trials) -> None:
    before = texts(trials.services.workspace())
    trial = start(trials).reject(reason="Not now.")
    assert trial.value["done"] == "Nothing was changed: a person rejected the plan."
    assert (trial.state, texts(trials.services.workspace()), RAN) == ("completed", before, [])


def test_a_change_that_is_rejected_is_left_out(trials: Trials) -> None:
    before = texts(trials.services.workspace())
    trial = start(trials).approve().reject(reason="I like numbers.").approve()
    assert "this was refused: “I like numbers.”" in trial.value["done"]
    assert (trial.value["files"], texts(trials.services.workspace())) == ([], before)
    assert (changes_of(trial).summary, trial.files) == ("No file was changed.", [])


def test_the_demo_model_stops_at_a_change_that_is_rejected(trials: Trials) -> None:
    """The steps of a rename belong together."""
    trial = start(trials, goal="Rename receipt to bill.").approve().reject(reason="No.").approve()
    assert "I did not go on, because the steps belong together." in trial.value["done"]
    assert (trial.state, trial.value["files"]) == ("completed", [])


def test_tests_that_fail_fail_the_run_and_the_changes_are_shown(trials: Trials) -> None:
    EXIT["code"] = 1
    trial = start(trials, tests="make check").approve().approve().approve()
    with pytest.raises(
        ToolError, match=r"They failed, with exit code 1.*The changes are kept and shown: 1 file"
    ) as raised:
        _ = trial.value
    assert (raised.value.code, trial.state, RAN) == ("tests_failed", "failed", ["make check"])
    assert [change.path for change in changes_of(trial).files] == [PATH]


def test_without_tests_none_are_run(trials: Trials) -> None:
    (trials.services.workspace() / "alone.py").write_text("a = 40\nb = 40\n")
    trial = start(trials, path="alone.py").approve().approve()
    assert trial.value["tests"].startswith("Not run: there is no folder called tests nearby")
    assert RAN == []


def test_a_component_that_is_not_there_is_said_before_a_model_is_asked(trials: Trials) -> None:
    trial = start(trials, path="shop/cart.py", script=())
    with pytest.raises(ToolError, match=r"There is no 'shop/cart\.py' in this workspace: give its path, or choose"):
        _ = trial.value


def test_a_model_that_does_more_than_the_plan_still_asks_for_each_change(trials: Trials) -> None:
    """What it is told not to do is no right: the gates are those of the tools."""
    script = [
        asks("final_answer", summary="Tidy up.", steps=["Nothing much."]),
        asks("files.write", path="shop/new.py", content="x = 1\n"),
        asks("shell.run", command="rm -r shop"),
        "I tidied up.",
    ]
    trial = start(trials, script).approve()
    (waits,) = trial.waiting.values()
    assert waits.change == Change(path="shop/new.py", before=None, after="x = 1\n")
    trial.approve().approve()
    assert [f"cd shop && {TESTS}"] == RAN  # an agent that refactors has no shell
    assert trial.value == {"done": "I tidied up.", "files": ["shop/new.py"], "tests": "They passed."}


def test_a_process_that_dies_anywhere_changes_and_asks_once(tmp_path: Path) -> None:
    def begun(name: str, dies_at: int | None = None) -> Trial:
        folder = tmp_path / name
        folder.mkdir()
        set_up(folder)
        RAN.clear()
        return start(Trials(TrialServices(folder=folder), dies_at=dies_at))

    whole = begun("whole").approve().approve().approve()
    for record in range(1, whole.records + 1):
        trial, decided = begun(str(record), record), 0
        while trial.state == "waiting":
            (asked,) = trial.waiting.values()
            if asked.ask == "interrupted":
                trial.answer("it_ran")
            else:
                trial.approve()
                decided += 1
        assert (decided, len(RAN)) == (3, 1)
        assert texts(tmp_path / str(record)) == texts(tmp_path / "whole")
        assert [change.path for change in changes_of(trial).files] == [PATH] if trial.state == "completed" else True
        assert sum(isinstance(output, Changes) for output in trial.outputs) <= 1
        asked_for = [output.tool for output in trial.outputs if isinstance(output, ToolOutput)]
        assert asked_for.count("files.write") == 1


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a`b", "a\nb", ""])
def test_a_path_that_leads_outside_is_refused_in_the_form(path: str) -> None:
    ((place, _),) = problems(Refactoring, {"path": path})
    assert place == "path"


def test_a_component_is_read_with_the_folder_that_has_its_tests(trials: Trials) -> None:
    workspace = trials.services.workspace()
    (workspace / "shop" / "__pycache__").mkdir()
    (workspace / "shop" / "__pycache__" / "a.txt").write_text("compiled")
    (workspace / "shop" / "picture").write_bytes(b"\0\1")
    (workspace / "shop" / "long.txt").write_text("x" * (TEXT_MOST + 1))
    found: dict[str, JSON] = trials.call(read_component, path=PATH).value
    assert (found["folder"], found["tests"], found["left_out"]) == ("shop", True, ["shop/long.txt"])
    assert sorted(found["files"]) == sorted(Project(name="Shop").files)
    assert trials.call(read_component, path="shop/shop").value["folder"] == "shop"
    assert trials.call(read_component, path=".").value["folder"] == "."
    assert trials.call(read_component, path=PATH, folder="shop/shop").value["tests"] is False


def test_a_link_is_no_component(trials: Trials) -> None:
    (trials.services.workspace() / "link.py").symlink_to("/etc/passwd")
    with pytest.raises(ToolError):
        _ = trials.call(read_component, path="link.py").value
    assert "link.py" not in trials.call(read_component, path=".").value["files"]


def test_changes_are_a_unified_diff() -> None:
    before = {"a.txt": "one\ntwo\n", "gone.txt": "x\n", "same.txt": "s\n"}
    after = {"a.txt": "one\n2", "new.txt": "n\n", "same.txt": "s\n", "huge.txt": "h\n" * 4000}
    changes = changes_between(before, after, [])
    assert [change.path for change in changes.files] == ["a.txt", "gone.txt", "new.txt"]
    assert changes.left_out == ["huge.txt"]
    assert changes.patch == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n\\ No newline at end of file\n"
        "--- a/gone.txt\n+++ b/gone.txt\n@@ -1 +0,0 @@\n-x\n"
        "--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1 @@\n+n\n"
    )


def test_only_workflows_call_what_they_bring() -> None:
    from agents.discovery import installed as tools

    offered = {tool.name for tool in tools().offered}
    assert {"project.write", "component.read"} <= {tool.name for tool in tools().tools}
    assert not {"project.write", "component.read"} & offered
    assert call(list_files).state == "completed"


def test_what_was_changed_is_shown_though_the_agent_was_stopped(trials: Trials) -> None:
    """It asks more often than it may: its first change stands, and people see it."""
    plan = asks("final_answer", summary="Tidy up.", steps=["Write the file."])
    reads = [asks(read_file, path=PATH) for _ in range(20)]
    trial = start(trials, script=[plan, asks(write_file, path=PATH, content="WIDTH = 40\n"), *reads])
    trial.approve().approve()
    with pytest.raises(ToolError, match="20 rounds"):
        _ = trial.value
    assert [change.path for change in changes_of(trial).files] == [PATH]
    assert [file.name for file in trial.files] == ["changes.diff"]
