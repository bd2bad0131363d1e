"""The workflow that imports skills: their whole text on one card, and nothing is replaced by the way."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from channels.db import database_sync_to_async
from django.contrib.auth.models import Permission, User
from django.test import Client

from agents.engine.errors import ToolError
from agents.models import Skill
from agents.testing import Trial, Trials, TrialServices
from conversations.files.workspaces import folder_of
from conversations.prompts.startable import NotAllowed
from conversations.verification.stored import verify
from tests.conversations.recorded import Site
from tests.conversations.support import person
from tests.engine.support import says
from tests.workflows.test_shipped import decided, result_of, use_the_demo
from workflows import discovery
from workflows.running import start_run
from workflows.shipped.skills.tools import MAY_NOT_CHANGE, SKILLS_MOST, add_skills, read_skills
from workflows.shipped.skills.workflows import import_skills

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")
TOOLS = (read_skills, add_skills)
GOOD = "---\nname: {name}\ndescription: When somebody asks for {name}.\n{more}---\n\nDo this.\nThen that.\n"


class Services(TrialServices):
    """With the database of the test."""

    async def look_up(self, function: Callable[..., T], *args: Any) -> T:
        found: T = await database_sync_to_async(function)(*args)
        return found


@pytest.fixture
def ann(db: None) -> User:
    user = person("ann")
    user.user_permissions.set(Permission.objects.filter(codename__in=["add_skill", "change_skill"]))
    return user


@pytest.fixture
def trials(ann: User, tmp_path: Path) -> Trials:
    Skill.objects.all().delete()
    return Trials(Services(user=ann.pk, folder=tmp_path))


def put(trials: Trials, name: str, text: str | bytes = "", more: str = "", folder: str = "skills") -> Path:
    file = trials.services.workspace() / folder / name / "SKILL.md"
    file.parent.mkdir(parents=True)
    content = text or GOOD.format(name=name, more=more)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def start(trials: Trials, **input: Any) -> Trial:
    return trials.run(import_skills, tools=TOOLS, **input)


def body(name: str) -> str:
    return Skill.objects.get(name=name).body


def test_it_ships_for_those_who_may_add_skills() -> None:
    assert discovery.installed()["skills.import"] is import_skills
    assert import_skills.permission == "agents.add_skill"
    Permission.objects.get(content_type__app_label="agents", codename="add_skill")


def test_one_card_shows_the_whole_text_of_each_before_it_is_added(trials: Trials) -> None:
    put(trials, "tea", more="tools: [files.read, tea.pot]\n")
    put(trials, "bread")
    trial = start(trials)
    (card,) = trial.waiting.values()
    assert card.change
    assert card.change.after == (
        "===== bread, which is new =====\ndescription: When somebody asks for bread.\n\nDo this.\nThen that.\n\n"
        "===== tea, which is new =====\ndescription: When somebody asks for tea.\ntools: files.read, tea.pot\n\n"
        "Do this.\nThen that.\n"
    )
    assert card.facts == [
        "Adds bread, tea.",
        "A skill is an instruction: every agent of this site may follow it, for everybody.",
        "While tea is not active, agents are not offered files.read, tea.pot.",
    ]
    assert (card.risk, Skill.objects.count()) == ("high", 0)
    trial.approve()
    assert trial.value["done"] == "Added bread, tea. Named in skills, and not installed: tea.pot."
    tea = Skill.objects.get(name="tea")
    assert (tea.description, tea.body) == ("When somebody asks for tea.", "Do this.\nThen that.")
    assert (tea.tools, tea.enabled) == (["files.read", "tea.pot"], True)


def test_what_is_invisible_in_a_skill_is_on_the_card_as_it_is(trials: Trials) -> None:
    """The page marks it: see conversations.display.faithful."""
    put(trials, "tea", GOOD.format(name="tea", more="") + "Ob\u200bey \u202enobody.\n")
    (card,) = start(trials).waiting.values()
    assert card.change
    assert "Ob\u200bey \u202enobody." in card.change.after


def test_a_name_that_exists_is_not_replaced_by_the_way(trials: Trials) -> None:
    put(trials, "tea")
    Skill.objects.create(name="tea", description="Mine.", body="My words.")
    trial = start(trials)
    assert (trial.state, trial.value["done"]) == ("completed", "Nothing was imported: see what was left out.")
    (why,) = trial.value["left_out"]
    assert why.startswith("skills/tea/SKILL.md: A skill called 'tea' exists already: choose “Replace existing skills”")
    assert body("tea") == "My words."


def test_what_is_replaced_is_shown_whole_and_as_a_difference(trials: Trials) -> None:
    put(trials, "tea")
    Skill.objects.create(
        name="tea", description="When somebody asks for tea.", body="Do this.\nNot that.", enabled=False
    )
    trial = start(trials, replace=True)
    (card,) = trial.waiting.values()
    assert card.change
    assert "===== tea, which is replaced =====\ndescription: When somebody asks for tea.\n\nDo this.\nThen that.\n" in (
        card.change.after
    )
    assert "\n-Not that.\n+Then that.\n" in card.change.after.partition("===== tea, what changes =====")[2]
    assert card.facts[0] == "Replaces tea. What it says now is lost."
    trial.approve()
    assert (trial.value["done"], trial.value["replaced"]) == (
        "Replaced tea. Disabled on this site, as before: tea.",
        ["tea"],
    )
    assert (body("tea"), Skill.objects.get().enabled) == ("Do this.\nThen that.", False)


def test_one_that_is_disabled_stays_so_and_the_card_and_the_result_say_it(trials: Trials) -> None:
    put(trials, "tea")
    put(trials, "milk")
    Skill.objects.create(name="tea", description="Old.", body="Old.", enabled=False)
    trial = start(trials, replace=True)
    (card,) = trial.waiting.values()
    assert [fact for fact in card.facts if "disabled" in fact] == [
        "tea is disabled on this site, and stays so: no agent follows it."
    ]
    assert "Disabled on this site, as before: tea." in trial.approve().value["done"]
    assert dict(Skill.objects.values_list("name", "enabled")) == {"milk": True, "tea": False}


def test_who_may_not_change_skills_adds_only_new_ones(trials: Trials, ann: User) -> None:
    ann.user_permissions.set(Permission.objects.filter(codename="add_skill"))
    put(trials, "tea")
    put(trials, "bread")
    Skill.objects.create(name="tea", description="Mine.", body="My words.")
    trial = start(trials, replace=True).approve()
    assert trial.value["added"] == ["bread"]
    assert trial.value["left_out"] == [f"skills/tea/SKILL.md: {MAY_NOT_CHANGE}"]
    assert body("tea") == "My words."


@pytest.mark.parametrize("lost", ["add_skill", "change_skill"])
def test_a_right_that_is_lost_while_the_card_waits_is_lost(trials: Trials, ann: User, lost: str) -> None:
    put(trials, "tea")
    Skill.objects.create(name="tea", description="Mine.", body="My words.")
    trial = start(trials, replace=True)
    ann.user_permissions.remove(Permission.objects.get(codename=lost))
    trial.approve()
    if lost == "add_skill":
        with pytest.raises(ToolError, match="You may not add skills any more"):
            _ = trial.value
    else:
        assert trial.value["left_out"] == [f"tea: {MAY_NOT_CHANGE}"]
    assert body("tea") == "My words."


@pytest.mark.parametrize("there", ["changed", "added", "removed"])
def test_a_skill_that_changes_while_the_card_waits_stays_as_it_is(trials: Trials, there: str) -> None:
    put(trials, "tea")
    put(trials, "bread")
    if there != "added":
        Skill.objects.create(name="tea", description="Mine.", body="My words.")
    trial = start(trials, replace=True)
    if there == "changed":
        Skill.objects.update(body="My later words.")
    elif there == "added":
        Skill.objects.create(name="tea", description="Mine.", body="My later words.")
    else:
        Skill.objects.all().delete()
    trial.approve()
    assert trial.value["added"] == ["bread"]
    assert trial.value["left_out"] == ["tea: It has been changed on the site since it was shown, and stays as it is."]
    assert [skill.body for skill in Skill.objects.filter(name="tea")] == (
        [] if there == "removed" else ["My later words."]
    )


def test_files_that_change_while_the_card_waits_change_nothing(trials: Trials) -> None:
    """What is added is what was shown."""
    file = put(trials, "tea")
    trial = start(trials)
    file.write_text(GOOD.format(name="tea", more="").replace("Do this.", "Obey me."))
    trial.approve()
    assert body("tea") == "Do this.\nThen that."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("No front matter.", "It does not begin with front matter"),
        ("---\nname: Big Tea\ndescription: d\n---\nx", "'Big Tea' is not a valid name"),
        ("---\nname: tea\n---\nx", "Its front matter has no description"),
        ("---\nname: tea\ndescription: d\n---\n", "There is no text below the front matter"),
        ("---\nname: tea\ndescription: d\ntools: 7\n---\nx", "Its `tools` must be a list of names"),
        ("---\nname: tea\ndescription: d\ntools: ['']\n---\nx", "Its `tools` has an empty name"),
        (b"\xff\xfe", "It is not UTF-8"),
        (b"---\nname: tea\ndescription: d\n---\n\0", "It is not text"),
        (GOOD.format(name="tea", more="") + "x" * 100_000, "'skills/tea/SKILL.md' has 100,"),
    ],
)
def test_what_is_no_skill_is_refused_with_the_reason_and_the_others_go_on(
    trials: Trials, text: str | bytes, why: str
) -> None:
    put(trials, "tea", text)
    put(trials, "bread")
    trial = start(trials).approve()
    assert trial.value["added"] == ["bread"]
    (reason,) = trial.value["left_out"]
    assert reason.startswith(f"skills/tea/SKILL.md: {why}")


def test_two_of_one_name_are_one_and_a_reason(trials: Trials) -> None:
    put(trials, "a", GOOD.format(name="tea", more=""))
    put(trials, "b", GOOD.format(name="tea", more=""))
    trial = start(trials).approve()
    assert trial.value["left_out"] == [
        "skills/b/SKILL.md: skills/a/SKILL.md already has the name 'tea': rename one of the two."
    ]


def test_what_is_there_just_so_is_left_out(trials: Trials) -> None:
    put(trials, "tea")
    start(trials).approve()
    trial = start(trials, replace=True)
    assert trial.value["left_out"] == ["skills/tea/SKILL.md: The site already has exactly this skill."]


def test_links_lead_nowhere(trials: Trials, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    (outside / "evil").mkdir(parents=True)
    (outside / "evil" / "SKILL.md").write_text(GOOD.format(name="evil", more=""))
    put(trials, "tea")
    skills = trials.services.workspace() / "skills"
    (skills / "linked").symlink_to(outside / "evil")
    (skills / "file").mkdir()
    (skills / "file" / "SKILL.md").symlink_to(outside / "evil" / "SKILL.md")
    (skills / "hard").mkdir()
    os.link(outside / "evil" / "SKILL.md", skills / "hard" / "SKILL.md")
    trial = start(trials).approve()
    assert trial.value["added"] == ["tea"]
    assert [each.partition(": ")[0] for each in trial.value["left_out"]] == [
        "skills/file/SKILL.md",
        "skills/hard/SKILL.md",
        "skills/linked/SKILL.md",
    ]
    assert all("link" in each for each in trial.value["left_out"])


@pytest.mark.parametrize("folder", ["skills", "lost", "."])
def test_a_folder_without_skills_is_said(trials: Trials, folder: str) -> None:
    (trials.services.workspace() / "skills").mkdir()
    with pytest.raises(ToolError, match=r"There is no (folder|SKILL\.md)") as raised:
        _ = start(trials, folder=folder).value
    assert raised.value.code == "not_found"


def test_a_folder_may_be_one_skill(trials: Trials) -> None:
    put(trials, "tea")
    assert start(trials, folder="skills/tea").approve().value["added"] == ["tea"]


def test_too_many_or_too_long_for_one_card_is_refused(trials: Trials) -> None:
    for number in range(3):
        put(trials, f"tea-{number}", GOOD.format(name=f"tea-{number}", more="") + "x\n" * 1_500)
    with pytest.raises(
        ToolError, match=r"These skills are too long: up to .* can be shown at once. Import fewer of them"
    ):
        _ = start(trials).value
    for number in range(SKILLS_MOST):
        put(trials, f"a-{number}", folder="many")
    put(trials, "b", folder="many")
    with pytest.raises(ToolError, match=rf"There are {SKILLS_MOST + 1} skills in 'many'"):
        _ = start(trials, folder="many").value
    assert not Skill.objects.exists()


def test_a_card_that_is_rejected_adds_nothing(trials: Trials) -> None:
    put(trials, "tea")
    trial = start(trials).reject(reason="Not this one.")
    assert (trial.state, trial.value["done"]) == ("completed", "Nothing was imported: Not this one.")
    assert not Skill.objects.exists()


def test_a_process_that_dies_anywhere_adds_them_once(trials: Trials) -> None:
    put(trials, "tea")
    whole = start(trials).approve()
    for record in range(1, whole.records + 1):
        Skill.objects.all().delete()
        trial = start(Trials(trials.services, dies_at=record)).approve()
        assert trial.value == whole.value
        assert [skill.name for skill in Skill.objects.all()] == ["tea"]


def test_on_a_site_the_card_marks_what_is_invisible_and_who_lost_the_right_is_refused(ann: User, site: Site) -> None:
    chat = site.runs(ann, says("Hello.")).conversation
    use_the_demo(site.monkeypatch)
    file = folder_of(chat.pk) / "skills" / "tea" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text(GOOD.format(name="tea-time", more="") + "Ob\u200bey.\n")
    run = start_run(import_skills, ann, {}, conversation=chat)
    site.works()
    client = Client()
    client.force_login(ann)
    page = client.get(f"/c/{chat.pk}/").text
    assert "tea-time, which is new" in page
    assert "U+200B" in page
    run = decided(site, run, ann)
    assert (run.state, result_of(run)["added"]) == ("completed", ["tea-time"])
    assert body("tea-time") == "Do this.\nThen that.\nOb\u200bey."
    assert [str(problem) for problem in verify(chat.pk).problems] == []
    ann.user_permissions.clear()
    with pytest.raises(NotAllowed):
        start_run(import_skills, User.objects.get(pk=ann.pk), {}, conversation=chat)
