"""`manage.py import_blueprints`: rows from Markdown files, and one sentence about each invalid file."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command

from agents.models import Blueprint
from agents.models.blueprint import NAME_MOST, TAG_MOST, TAGS_MOST, TEXT_MOST, WHEN_MOST
from agents.plugins.blueprints import tools
from agents.search.index import best
from tests.plugins.importing import imported_by

pytestmark = pytest.mark.django_db

GOOD = "---\nname: Refunds\nwhen: Somebody wants their money back.\ntags: [credit note]\n---\n\nLook up the order.\n"


def imported(folder: Path) -> tuple[list[str], list[str]]:
    return imported_by("import_blueprints", folder)


def test_it_adds_updates_and_leaves_alone(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "refunds.md"
    file.parent.mkdir()
    file.write_text(GOOD)
    (tmp_path / "README.md").write_text("What this folder is for.")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.md").write_text("Not ours.")
    assert imported(tmp_path) == (["Refunds: added"], [])
    blueprint = Blueprint.objects.get()
    assert (blueprint.when, blueprint.text, blueprint.tags, blueprint.enabled, blueprint.version) == (
        "Somebody wants their money back.",
        "Look up the order.",
        ["credit note"],
        True,
        1,
    )
    assert imported(tmp_path) == (["Refunds: unchanged"], [])
    blueprint.enabled = False
    blueprint.save()
    file.write_text(GOOD.replace("Look up", "Find"))
    assert imported(tmp_path) == (["Refunds: updated (disabled, and stays so)"], [])
    blueprint.refresh_from_db()
    assert (blueprint.text, blueprint.enabled, blueprint.version) == ("Find the order.", False, 3)


def test_what_is_imported_is_found_and_after_an_update_by_its_new_words(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(GOOD)
    imported(tmp_path)
    assert len(best(Blueprint.COLLECTION, "credit notes", 5)) == 1
    (tmp_path / "a.md").write_text(GOOD.replace("credit note", "voucher"))
    imported(tmp_path)
    assert best(Blueprint.COLLECTION, "credit notes", 5) == []
    assert len(best(Blueprint.COLLECTION, "vouchers", 5)) == 1


def test_groups_are_those_of_the_file_and_stay_if_it_names_none(tmp_path: Path) -> None:
    """Else a blueprint that an administrator gave to one group would be everybody's after the next import."""
    support = Group.objects.create(name="Support")
    (tmp_path / "a.md").write_text(GOOD)
    imported(tmp_path)
    blueprint = Blueprint.objects.get()
    blueprint.groups.add(support)
    (tmp_path / "a.md").write_text(GOOD.replace("Look up", "Find"))
    assert imported(tmp_path)[0] == ["Refunds: updated"]
    assert list(blueprint.groups.all()) == [support]
    (tmp_path / "a.md").write_text(GOOD.replace("tags:", "groups: []\ntags:"))
    imported(tmp_path)
    assert not blueprint.groups.exists()
    assert not Blueprint.objects.get().restricted
    (tmp_path / "a.md").write_text(GOOD.replace("tags:", "groups: Support\ntags:"))
    assert imported(tmp_path)[0] == ["Refunds: updated"]
    assert list(blueprint.groups.all()) == [support]
    assert imported(tmp_path)[0] == ["Refunds: unchanged"]
    Group.objects.all().delete()
    (tmp_path / "a.md").write_text(GOOD)
    assert imported(tmp_path)[0] == ["Refunds: unchanged (told to nobody: its groups are gone)"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Just text.", "put `---`, a name, a when and `---` at the top"),
        ("---\nname: one\n---\nx", "has no when"),
        ("---\n- one\n---\nx", "write `name: ...` and `when: ...`"),
        (f"---\nname: {'n' * (NAME_MOST + 1)}\nwhen: w\n---\nx", "shorten it to 100"),
        (f"---\nname: n\nwhen: {'w' * (WHEN_MOST + 1)}\n---\nx", "shorten it to 1,024"),
        (f"---\nname: n\nwhen: w\n---\n{'x' * (TEXT_MOST + 1)}", "shorten it to 20,000, or make several of it"),
        ("---\nname: n\nwhen: w\ntags: 5\n---\nx", "write, for example, `tags: [refund, invoice]`"),
        (f"---\nname: n\nwhen: w\ntags: {','.join(map(str, range(TAGS_MOST + 1)))}\n---\nx", "too many tags"),
        (f"---\nname: n\nwhen: w\ntags: [{'t' * (TAG_MOST + 1)}]\n---\nx", "too many tags, or too long ones"),
        ("---\nname: n\nwhen: w\ngroups: [Nobody]\n---\nx", "there is no group 'Nobody': create it in the admin"),
        (
            "---\nname: n\nwhen: w\ngroup: Support\n---\nx",
            "has a field `group`: there are only name, when, tags, groups",
        ),
        ("---\nname: n\nwhen: w\ngroups:\n---\nx", "name some, or write `groups: []` if it is for everybody"),
        ("---\nname: n\nwhen: w\ngroups: ''\n---\nx", "name some, or write `groups: []`"),
        ('---\nname: "R\\ud800"\nwhen: w\n---\nx', "its name has a null byte or half a character"),
        ('---\nname: "R\\0"\nwhen: w\n---\nx', "its name has a null byte or half a character"),
        ('---\nname: n\nwhen: w\ntags: ["t\\0"]\n---\nx', "its tags has a null byte"),
        ("---\nname: Refunds\nwhen: w\n---\nx", "already has the name 'Refunds'"),
        (b"---\nname: n\nwhen: \xff\n---\nx", "not UTF-8"),
    ],
)
def test_a_bad_file_is_named_and_the_others_are_imported(tmp_path: Path, text: str | bytes, says: str) -> None:
    (tmp_path / "a.md").write_text(GOOD)
    (tmp_path / "bad.md").write_bytes(text if isinstance(text, bytes) else text.encode())
    done, (bad,) = imported(tmp_path)
    assert done == ["Refunds: added"]
    assert bad.startswith(f"{tmp_path / 'bad.md'}: ")
    assert says in bad
    assert Blueprint.objects.count() == 1


def test_a_folder_without_any_says_so(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"There is no Markdown file \(\*\.md\)"):
        call_command("import_blueprints", tmp_path)
    with pytest.raises(CommandError, match="There is no Markdown file"):
        call_command("import_blueprints", tmp_path / "nowhere")


def test_what_a_model_proposes_fits_where_files_and_the_admin_put_theirs() -> None:
    """The tool is declared without Django, so it names the limits itself."""
    assert (tools.NAME_MOST, tools.WHEN_MOST, tools.TEXT_MOST) == (NAME_MOST, WHEN_MOST, TEXT_MOST)
    assert (tools.TAGS_MOST, tools.TAG_MOST) == (TAGS_MOST, TAG_MOST)
