"""The workflow that cleans up: it proposes with reasons, and deletes exactly what was chosen and has not changed."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.engine.errors import ToolError
from agents.engine.outputs.kinds import ToolOutput
from agents.engine.schema import problems
from agents.plugins.files import box
from agents.plugins.show.tools import show_table
from agents.testing import Trial, Trials, TrialServices, trials
from workflows import discovery
from workflows.shipped.cleanup import looking
from workflows.shipped.cleanup.labels import label_of, path_of
from workflows.shipped.cleanup.tools import CHANGED, PROPOSED_MOST, delete_items, look_at_workspace
from workflows.shipped.cleanup.workflows import PARTLY, CleanUp, clean_up_workspace

__all__ = ["trials"]  # a fixture

TOOLS = (look_at_workspace, delete_items, show_table)
DAY = 86_400


@pytest.fixture
def workspace(trials: Trials) -> Path:
    return filled(trials.services.workspace())


def filled(folder: Path) -> Path:
    """A workspace with something of each kind, and with what has to stay."""
    put(folder, "keep.md", "Stays.")
    put(folder, "a.tmp", "temporary")
    put(folder, "first.txt", "the same", days=9)
    put(folder, "copies/second.txt", "the same")
    put(folder, "old.md", "Of long ago.", days=400)
    put(folder, "pkg/__pycache__/a.pyc", "compiled")
    put(folder, "pkg/main.py", "x = 1")
    (folder / "empty" / "within").mkdir(parents=True)
    return folder


def put(folder: Path, path: str, text: str, days: int = 0) -> Path:
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    past = time.time() - days * DAY
    os.utime(file, (past, past))
    return file


def start(trials: Trials, **input: Any) -> Trial:
    return trials.run(clean_up_workspace, tools=TOOLS, **input)


def proposed(trials: Trials, **input: Any) -> dict[str, str]:
    asked = {"folder": ".", "temporary": False, "duplicates": False, "empty": False} | input
    return {each["item"]["path"]: each["why"] for each in trials.call(look_at_workspace, **asked).value["proposed"]}


def choices(trial: Trial) -> list[str]:
    asked = [output for output in trial.outputs if isinstance(output, ToolOutput) and output.tool == "human"]
    found: list[str] = asked[-1].input["schema"]["properties"]["delete"]["items"]["enum"]
    return found


def there(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def test_it_ships() -> None:
    assert discovery.installed()["workspace.clean_up"] is clean_up_workspace


def test_a_person_chooses_and_exactly_that_is_deleted(trials: Trials, workspace: Path) -> None:
    before = there(workspace)
    trial = start(trials)
    assert set(choices(trial)) == {"a.tmp", "copies/second.txt", "old.md", "pkg/__pycache__", "empty"}
    trial.answer({"delete": ["a.tmp", "pkg/__pycache__", "empty", "copies/second.txt"]})
    (card,) = trial.waiting.values()
    assert card.change
    assert (card.risk, there(workspace)) == ("destructive", before)
    assert card.change.before == (
        "a.tmp  (9 bytes)\ncopies/second.txt  (8 bytes)\npkg/__pycache__  (8 bytes)\nempty  (0 bytes)\n"
    )
    assert card.facts[0] == "Deletes 4 files and folders from the workspace, and frees 25 bytes."
    trial.approve()
    gone = {"a.tmp", "copies/second.txt", "pkg/__pycache__", "pkg/__pycache__/a.pyc", "empty", "empty/within"}
    assert there(workspace) == before - gone
    assert trial.value == {
        "done": "Deleted 4 files and folders, which frees 25 bytes.",
        "deleted": ["a.tmp", "copies/second.txt", "pkg/__pycache__", "empty"],
        "left_alone": [],
        "freed": "25 bytes",
    }


def test_each_is_proposed_with_its_reason(trials: Trials, workspace: Path) -> None:
    put(workspace, "large.bin", "x" * 2**20)
    assert proposed(trials, temporary=True) == {
        "a.tmp": "A temporary file, by its name.",
        "pkg/__pycache__": "A cache that programs create again when they need it.",
    }
    assert proposed(trials, duplicates=True) == {"copies/second.txt": "The same content as first.txt."}
    assert proposed(trials, empty=True) == {"empty": "An empty folder."}
    assert proposed(trials, days=30) == {"old.md": "Not changed for 400 days."}
    assert proposed(trials, megabytes=1) == {"large.bin": "Large: 1 MB."}
    put(workspace, "old.tmp", "x", days=400)
    assert proposed(trials, temporary=True, days=30)["old.tmp"] == (
        "A temporary file, by its name. Not changed for 400 days."
    )


@pytest.mark.parametrize("answer", [{}, {"delete": []}])
def test_who_chooses_nothing_is_asked_nothing_more(trials: Trials, workspace: Path, answer: dict[str, Any]) -> None:
    before = there(workspace)
    trial = start(trials).answer(answer)
    assert (trial.value["done"], there(workspace)) == ("Nothing was deleted: nothing was chosen.", before)


def test_a_clean_workspace_asks_nobody(trials: Trials) -> None:
    put(trials.services.workspace(), "keep.md", "Stays.")
    trial = start(trials)
    assert (trial.state, trial.value["done"]) == ("completed", "There is nothing to clean up.")


def test_a_deletion_that_is_rejected_deletes_nothing(trials: Trials, workspace: Path) -> None:
    before = there(workspace)
    trial = start(trials).answer({"delete": ["a.tmp"]}).reject(reason="Not today")
    assert (trial.state, trial.value["done"]) == ("completed", "Nothing was deleted: Not today.")
    assert there(workspace) == before


def test_only_what_was_listed_can_be_chosen(trials: Trials, workspace: Path) -> None:
    trial = start(trials)
    with pytest.raises(ValueError, match="delete"):
        trial.answer({"delete": ["keep.md"]})
    assert (workspace / "keep.md").exists()


@pytest.mark.parametrize("when", ["before the choice", "before the approval"])
def test_what_has_changed_since_it_was_listed_stays_and_is_named(trials: Trials, workspace: Path, when: str) -> None:
    trial = start(trials)

    def change() -> None:
        put(workspace, "a.tmp", "TEMPORARY")
        put(workspace, "pkg/__pycache__/b.pyc", "new")
        put(workspace, "empty/within/new.txt", "new")
        put(workspace, "first.txt", "the same no more", days=9)
        (workspace / "old.md").unlink()
        (workspace / "old.md").symlink_to("keep.md")

    if when == "before the choice":
        change()
    trial.answer({"delete": choices(trial)})
    if when == "before the approval":
        change()
    before = there(workspace)
    trial.approve()
    assert there(workspace) == before
    assert (trial.value["deleted"], trial.value["freed"]) == ([], "0 bytes")
    assert sorted(trial.value["left_alone"]) == [
        f"a.tmp: {CHANGED}",
        "copies/second.txt: It is the only one of its content now: first.txt has changed.",
        f"empty: {CHANGED}",
        f"old.md: {CHANGED}",
        f"pkg/__pycache__: {CHANGED}",
    ]


def test_nothing_outside_and_nothing_linked_is_proposed(trials: Trials, workspace: Path, tmp_path: Path) -> None:
    outside = put(tmp_path, "outside.tmp", "the same")
    (workspace / "link.tmp").symlink_to(outside)
    (workspace / "folder").symlink_to(tmp_path)
    (workspace / "broken.tmp").symlink_to("/nowhere")
    os.link(outside, workspace / "hard.tmp")
    os.mkfifo(workspace / "pipe.tmp")
    (workspace / "pkg" / "__pycache__" / "link").symlink_to(outside)
    for folder in (".git", "node_modules"):
        put(workspace, f"{folder}/x.tmp", "the same", days=400)
        (workspace / folder / "nothing").mkdir()
    assert set(choices(start(trials))) == {"a.tmp", "copies/second.txt", "old.md", "empty"}


@pytest.mark.parametrize("path", ["../outside.tmp", "/etc/passwd", "\\x2e\\x2e/outside.tmp", "keep.md", "link/passwd"])
def test_no_call_deletes_what_was_not_listed(trials: Trials, workspace: Path, tmp_path: Path, path: str) -> None:
    """Not even one whose card was edited."""
    (workspace / "link").symlink_to("/etc")
    trial = trials.call(delete_items, items=[{"path": path, "size": 1, "mark": "made up"}]).approve()
    assert trial.value["deleted"] == []
    assert list(trial.value["left"]) == [path]
    assert (workspace / "keep.md").exists()


@pytest.mark.parametrize("folder", ["../other", "/etc", "a\0b"])
def test_a_folder_outside_is_refused_in_the_form(folder: str) -> None:
    ((place, _),) = problems(CleanUp, {"folder": folder})
    assert place == "folder"


def test_a_folder_that_is_not_there_is_said(trials: Trials) -> None:
    with pytest.raises(ToolError, match="'lost' does not exist"):
        _ = start(trials, folder="lost").value


def test_invisible_characters_are_shown_on_the_list_and_deleted_as_they_are(trials: Trials, workspace: Path) -> None:
    names = ["a\u200b.tmp", "a\\u200b.tmp", "a\n.tmp", "a .tmp", "a  .tmp", "\u202egpj.tmp"]
    for name in names:
        put(workspace, name, name.encode(errors="replace").hex())
    trial = start(trials, duplicates=False, empty=False, days=0)
    shown = choices(trial)
    assert len({*shown}) == len(names) + 2  # with the two that are there anyway
    assert all(label.isprintable() for label in shown)
    assert "a\\u200b.tmp" in shown
    assert "a\\\\u200b.tmp" in shown
    trial.answer({"delete": ["a\\u200b.tmp", "\\u202egpj.tmp", "a\\x0a.tmp"]}).approve()
    assert {name for name in names if (workspace / name).exists()} == {"a\\u200b.tmp", "a .tmp", "a  .tmp"}
    assert len(trial.value["deleted"]) == 3


def test_a_name_that_is_not_utf_8_is_left_alone(trials: Trials, workspace: Path) -> None:
    (workspace / os.fsdecode(b"\xff.tmp")).touch()
    (workspace / "empty" / os.fsdecode(b"\xff")).touch()
    assert set(choices(start(trials))) == {"a.tmp", "copies/second.txt", "old.md", "pkg/__pycache__", "empty/within"}


PIECES = ["a", " ", "\\", "x20", "\\x20", "\\u200b", "\u200b", "\u202e", "\n", "\udcff", "\u0301", "\U000e0100"]
PATH = st.lists(st.sampled_from(PIECES) | st.characters(), max_size=6).map("".join)


@given(PATH, PATH)
def test_a_label_has_one_path_and_hides_nothing(path: str, other: str) -> None:
    assert path_of(label_of(path)) == path
    assert label_of(path).isprintable()
    assert (label_of(path) == label_of(other)) is (path == other)


def test_more_than_a_list_has_are_the_largest_and_it_says_how_many_others(trials: Trials, workspace: Path) -> None:
    for number in range(PROPOSED_MOST + 20):
        put(workspace, f"{number}.tmp", "x" * (1000 + number))
    trial = start(trials, duplicates=False)
    (question,) = [output for output in trial.outputs if isinstance(output, ToolOutput) and output.tool == "human"]
    assert len(choices(trial)) == PROPOSED_MOST
    assert choices(trial)[0] == f"{PROPOSED_MOST + 19}.tmp"
    assert " 24 more are smaller: clean up again" in question.input["schema"]["properties"]["delete"]["description"]


def test_of_a_huge_workspace_a_part_is_looked_at_and_it_says_so(
    trials: Trials, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "ENTRIES_MOST", 0)
    trial = start(trials)
    assert trial.value["done"].endswith(PARTLY)


@pytest.mark.parametrize("cut", ["many", "deep", "long"])
def test_what_was_not_looked_at_is_said(
    trials: Trials, workspace: Path, monkeypatch: pytest.MonkeyPatch, cut: str
) -> None:
    monkeypatch.setattr(looking, "ENTRIES", 10)
    monkeypatch.setattr(looking, "DEPTH", 4)
    for number in range(10):
        put(workspace, f"many/{number}.tmp", str(number))
    put(workspace, "a/b/c/d.tmp", "deep")
    assert trials.call(look_at_workspace, folder=".").value["whole"]
    if cut == "many":
        put(workspace, "many/10.tmp", "10")
    elif cut == "deep":
        put(workspace, "a/b/c/d/e.tmp", "deeper")
    else:
        monkeypatch.setattr(box, "PATH_MOST", 25)
        put(workspace, "many/a-very-very-long-name.tmp", "long")
        (workspace / "many" / "5.tmp").unlink()
    assert not trials.call(look_at_workspace, folder=".").value["whole"]


def test_the_copy_that_stays_is_one_that_nothing_else_proposes(trials: Trials, workspace: Path) -> None:
    put(workspace, "draft.tmp", "precious", days=9)
    put(workspace, "book.txt", "precious")
    put(workspace, "x/old.txt", "dear", days=400)
    put(workspace, "x/new.txt", "dear")
    trial = start(trials)
    trial.answer({"delete": choices(trial)})
    (card,) = trial.waiting.values()
    assert not [fact for fact in card.facts if "listed copies" in fact]
    trial.approve()
    assert {"book.txt", "x/new.txt", "first.txt"} <= there(workspace)
    assert not {"draft.tmp", "x/old.txt", "copies/second.txt"} & there(workspace)


def test_of_copies_that_may_all_go_one_that_was_not_chosen_must_be_there(trials: Trials, workspace: Path) -> None:
    for name in "xyz":
        put(workspace, f"{name}.tmp", "precious")
    trial = start(trials).answer({"delete": ["x.tmp", "y.tmp"]})
    put(workspace, "z.tmp", "something else")
    left = trial.approve().value["left_alone"]
    why = "It is the only one of its content now: z.tmp has changed."
    assert sorted(left) == [f"x.tmp: {why}", f"y.tmp: {why}"]


def test_a_huge_file_is_proposed_in_bounded_time(trials: Trials, workspace: Path) -> None:
    with (workspace / "huge.bin").open("wb") as file:
        file.truncate(2**40)
    trial = start(trials)
    assert choices(trial)[0] == "huge.bin"
    assert trial.answer({"delete": ["huge.bin"]}).approve().value["freed"] == "1,024 GB"
    assert not (workspace / "huge.bin").exists()


def test_a_process_that_dies_anywhere_deletes_what_was_chosen_and_nothing_else(tmp_path: Path) -> None:
    chosen = ["a.tmp", "copies/second.txt", "empty"]

    def begun(name: str, dies_at: int | None = None) -> Trial:
        (tmp_path / name).mkdir()
        filled(tmp_path / name)
        return start(Trials(TrialServices(folder=tmp_path / name), dies_at=dies_at))

    whole = begun("whole").answer({"delete": chosen}).approve()
    for record in range(1, whole.records + 1):
        trial = begun(str(record), record).answer({"delete": chosen}).approve()
        assert there(tmp_path / str(record)) == there(tmp_path / "whole")
        assert trial.value == whole.value


FILES = ["a.tmp", "b.tmp", "c.bak", "sub/d.tmp", "sub/e.md", "f.md", "g.md"]
CONTENTS = st.sampled_from(["one", "two", "three"])


@given(
    contents=st.fixed_dictionaries(dict.fromkeys(FILES, CONTENTS)),
    picks=st.sets(st.integers(0, 20)),
    changes=st.dictionaries(st.sampled_from(FILES), CONTENTS | st.none(), max_size=3),
)
def test_only_what_was_chosen_and_is_unchanged_is_ever_deleted(
    contents: dict[str, str], picks: set[int], changes: dict[str, str | None]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in contents.items():
            put(folder, path, text)
        trial = start(Trials(TrialServices(folder=folder)))
        listed = choices(trial)
        chosen = [path for number, path in enumerate(listed) if number in picks]
        trial.answer({"delete": chosen})
        now: dict[str, str | None] = {**contents}
        if chosen:
            for changed, content in changes.items():
                put(folder, changed, content) if content else (folder / changed).unlink()
            now |= changes
            trial.approve()
        value = trial.value
        for path, now_there in now.items():
            unchanged = not chosen or path not in changes
            if path in value["deleted"]:
                assert path in chosen
                assert unchanged
                assert not (folder / path).exists()
            else:
                assert (folder / path).exists() is (now_there is not None)
        for path in chosen:
            assert (path in value["deleted"]) is not any(each.startswith(f"{path}: ") for each in value["left_alone"])
            if now[path] is not None and path not in value["deleted"]:
                assert (folder / path).read_text() == now[path]


@given(
    contents=st.fixed_dictionaries(dict.fromkeys(FILES, CONTENTS)),
    picks=st.sets(st.integers(0, 20)),
)
def test_the_last_copy_of_a_content_goes_only_if_the_card_says_so(contents: dict[str, str], picks: set[int]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in contents.items():
            put(folder, path, text)
        trial = start(Trials(TrialServices(folder=folder)))
        chosen = [path for number, path in enumerate(choices(trial)) if number in picks]
        trial.answer({"delete": chosen})
        facts = [fact for card in trial.waiting.values() for fact in card.facts if "All listed copies of" in fact]
        if chosen:
            trial.approve()
        assert set(trial.value["deleted"]) == set(chosen)
        left = [path.read_text() for path in folder.rglob("*") if path.is_file()]
        copied = {text for text in contents.values() if list(contents.values()).count(text) > 1}
        lost = {text for text in copied if text not in left}
        assert {contents[fact.split()[4]] for fact in facts} == lost
