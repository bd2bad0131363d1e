"""`manage.py import_skills`: rows from files in the public format, and one sentence about each invalid file."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from agents.markdown_files import FILE_MOST
from agents.models import Skill
from agents.skills import SHIPPED
from tests.plugins.importing import imported_by

pytestmark = pytest.mark.django_db

GOOD = "---\nname: {name}\ndescription: What it is for.\n---\n\nDo this.\n"


def put(folder: Path, name: str, text: str | bytes = "") -> Path:
    """A skill's folder."""
    file = folder / name / "SKILL.md"
    file.parent.mkdir(parents=True)
    content = text or GOOD.format(name=name)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def imported(folder: Path) -> tuple[list[str], list[str]]:
    return imported_by("import_skills", folder)


def test_it_adds_updates_and_leaves_alone(tmp_path: Path) -> None:
    put(tmp_path, "one")
    two = put(tmp_path, "two")
    assert imported(tmp_path) == (["one: added", "two: added"], [])
    Skill.objects.update(enabled=False)
    two.write_text(GOOD.format(name="two").replace("Do this.", "Do that."))
    assert imported(tmp_path) == (["one: unchanged", "two: updated"], [])
    skill = Skill.objects.get(name="two")
    assert (skill.body, skill.description, skill.enabled) == ("Do that.", "What it is for.", False)


def test_a_folder_may_be_one_skill(tmp_path: Path) -> None:
    put(tmp_path, "one")
    assert imported(tmp_path / "one") == (["one: added"], [])


@pytest.mark.parametrize(
    ("line", "tools"),
    [
        ("tools: [csv.summary, files.read]", ["csv.summary", "files.read"]),
        ("tools: csv.summary, files.read", ["csv.summary", "files.read"]),
        ("allowed-tools: files.read  files.list", ["files.read", "files.list"]),
        ("allowed-tools: Bash(git add:*) Read", ["Bash(git add:*)", "Read"]),
        ("tools: []\nallowed-tools: Read", []),
        ("license: MIT", []),
    ],
)
def test_tools_are_read_as_they_are_written_in_the_wild(tmp_path: Path, line: str, tools: list[str]) -> None:
    put(tmp_path, "one", GOOD.format(name="one").replace("\n---\n\n", f"\n{line}\n---\n\n"))
    missing = [tool for tool in tools if tool[0].isupper()]
    note = f" (tools that are not installed: {', '.join(missing)})" if missing else ""
    assert imported(tmp_path) == ([f"one: added{note}"], [])
    assert Skill.objects.get().tools == tools


BOMB = "\n".join(["a: &a [x, x]", *(f"{k}: &{k} [{', '.join(['*' + chr(ord(k) - 1)] * 9)}]" for k in "bcdefgh")])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Just text.", "does not begin with front matter"),
        ("---\nname: one\n", "does not begin with front matter"),
        ("---\nname: one\ndescription: a: b\n---\nx", "is not valid YAML"),
        ("---\n- one\n---\nx", "has no fields"),
        ("---\nname: one\n---\nx", "has no description"),
        ("---\nname: 5\ndescription: d\n---\nx", "has no name"),
        ("---\nname: One Two\ndescription: d\n---\nx", "'One Two' is not a valid name"),
        ("---\nname: one\ndescription: d\n---\n \n", "no text below the front matter"),
        ("---\nname: one\ndescription: " + "d" * 1025 + "\n---\nx", "shorten it to 1,024"),
        ("---\nname: one\ndescription: d\ntools: 5\n---\nx", "must be a list of names"),
        ("---\nname: one\ndescription: d\ntools: [[a]]\n---\nx", "must be a list of names"),
        ("---\nname: !!python/object/apply:os.getpid []\ndescription: d\n---\nx", "is not valid YAML"),
        ("---\nname: 2001-99-99\ndescription: d\n---\nx", "is not valid YAML"),
        ("---\n" + "[" * 5000 + "\n---\nx", "is not valid YAML"),
        (f"---\n{BOMB}\nname: *h\ndescription: d\n---\nx", "has no name"),
        ("---\nname: one\ndescription: d\n---\n" + "x" * FILE_MOST, "more than 100,000 bytes"),
        ("---\nname: one\n#" + "x" * 10_000 + "\n---\nx", "more than 10,000 characters"),
        ("---\nname: one\ndescription: d\n---\nx\0y", "null byte"),
        (b"---\nname: one\ndescription: \xff\n---\nx", "not UTF-8"),
    ],
)
def test_a_bad_file_is_named_and_the_others_are_imported(tmp_path: Path, text: str | bytes, says: str) -> None:
    file = put(tmp_path, "bad", text)
    put(tmp_path, "good")
    done, bad = imported(tmp_path)
    assert done == ["good: added"]
    assert len(bad) == 1
    assert bad[0].startswith(f"{file}: ")
    assert says in bad[0]
    assert list(Skill.objects.values_list("name", flat=True)) == ["good"]


def test_no_name_twice(tmp_path: Path) -> None:
    first = put(tmp_path, "a", GOOD.format(name="same"))
    put(tmp_path, "b", GOOD.format(name="same").replace("Do this.", "Do that."))
    done, bad = imported(tmp_path)
    assert done == ["same: added"]
    assert f"{first} already has the name 'same'" in bad[0]
    assert Skill.objects.get().body == "Do this."


def test_no_link_leads_out_of_the_folder(tmp_path: Path) -> None:
    outside = put(tmp_path / "outside", "one")
    inside = tmp_path / "inside"
    put(inside, "two")
    (inside / "linked").symlink_to(outside.parent)
    (inside / "three").mkdir()
    (inside / "three" / "SKILL.md").symlink_to(outside)
    done, bad = imported(inside)
    assert done == ["two: added"]
    assert [line.partition("inside/")[2].partition(":")[0] for line in bad] == ["linked/SKILL.md", "three/SKILL.md"]
    assert all("leads out of the folder" in line for line in bad)


def test_a_folder_without_skills_says_so(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"There is no SKILL\.md in"):
        call_command("import_skills", tmp_path)


def test_the_shipped_skills_name_installed_tools() -> None:
    assert imported(SHIPPED) == (["numbers: added"], [])
