"""Skills in real turns: described always, told in full while active, their tools held back until then."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from agents import discovery
from agents.engine.interfaces.provider import Answer, Request
from agents.engine.tools.plugin import Plugin
from agents.models import Skill
from agents.plugins.skills.plugin import Skills
from agents.skills import SHIPPED, add_first_skills
from agentsite.preparation import announce_administrator
from conversations.models import Conversation, Output, Prompt, Step
from conversations.prompts.start import start_conversation, start_prompt
from tests.conversations.recorded import Site
from tests.engine import cast
from tests.engine.support import call, results_in, says

pytestmark = pytest.mark.django_db

ACTIVATE = says("", call("skills.activate", name="numbers"))
OWN = {"skills_activate", "skills_deactivate"}


class Skilled(Site):
    """A site with the real tools and the plugin; it keeps what the model was sent."""

    def runs(
        self, owner: User, *script: Answer, conversation: Conversation | None = None, plugins: Any = None
    ) -> Prompt:
        registry, provider = cast.site(list(script), discovery.installed().tools, plugins or [Skills()])
        self.monkeypatch.setattr("agents.registry.policies", lambda: registry)
        prompt = start_prompt(conversation or start_conversation(owner), owner, "Go.")
        self.works()
        self.asked: list[Request] = provider.asked
        prompt.refresh_from_db()
        return prompt


@pytest.fixture
def skilled(monkeypatch: pytest.MonkeyPatch) -> Skilled:
    return Skilled(monkeypatch)


@pytest.fixture
def numbers() -> Skill:
    return Skill.objects.create(
        name="numbers", description="Figures in\nfiles.", body="Look before you count.", tools=["csv.summary"]
    )


def offered(request: Request) -> set[str]:
    return {tool.name for tool in request.tools}


def errors(prompt: Prompt) -> list[str]:
    entries: list[Any] = [row.entry() for row in Output.objects.filter(prompt=prompt, type="tool")]
    return [entry.result.error["code"] for entry in entries if entry.result.type == "error"]


def test_a_skill_is_told_and_its_tools_come_only_once_it_is_active(skilled: Skilled, ann: User, numbers: Skill) -> None:
    prompt = skilled.runs(ann, ACTIVATE, says("", call("csv.summary", path="none.csv")), says("Done."))
    before, after, last = skilled.asked
    for request in skilled.asked:
        assert "- numbers: Figures in files." in request.system
        assert offered(request) >= OWN | {"files_list", "shell_run"}
    assert "Look before you count." not in before.system
    assert "csv_summary" not in offered(before)
    assert after.system.endswith("# Skill: numbers\n\nLook before you count.")
    assert "csv_summary" in offered(after)
    assert results_in(last)[0] == "numbers is active from your next answer on."
    assert errors(prompt) == ["not_found"]  # it ran, and there is no such file


def test_a_tool_that_is_held_back_cannot_be_called_all_the_same(skilled: Skilled, ann: User, numbers: Skill) -> None:
    prompt = skilled.runs(ann, says("", call("csv.summary", path="a.csv")), says("Done."))
    assert errors(prompt) == ["unknown_tool"]


def test_what_is_active_stays_so_with_the_conversation_until_it_is_put_away(
    skilled: Skilled, ann: User, numbers: Skill
) -> None:
    first = skilled.runs(ann, ACTIVATE, says("Done."))
    away = says("", call("skills.deactivate", name="numbers"))
    later = [says(""), says("Ready."), away, says("Done.")]
    skilled.runs(ann, *later, conversation=first.conversation)
    active, gone = skilled.asked
    assert "Look before you count." in active.system
    assert "csv_summary" in offered(active)
    assert "Look before you count." not in gone.system
    assert "csv_summary" not in offered(gone)
    skilled.runs(ann, says("Hi."))  # another conversation
    assert "csv_summary" not in offered(skilled.asked[0])


@pytest.mark.parametrize("how", ["disabled", "deleted"])
def test_a_skill_that_is_gone_is_dropped_and_does_not_come_back_by_itself(
    skilled: Skilled, ann: User, numbers: Skill, how: str
) -> None:
    Skill.objects.create(name="other", description="Another.", body="Other.")
    first = skilled.runs(ann, ACTIVATE, says("Done."))
    Skill.objects.filter(pk=numbers.pk).update(enabled=False)
    if how == "deleted":
        numbers.delete()
    prompt = skilled.runs(ann, says(""), says(""), says("Hi."), conversation=first.conversation)
    assert prompt.state == "completed"
    assert "numbers" not in skilled.asked[0].system
    assert "csv_summary" in offered(skilled.asked[0])  # no skill holds it any more
    states = Step.objects.filter(prompt=prompt, type="state").values_list("payload", flat=True)
    assert list(states) == ['{"plugin":"skills","value":{"active":[]}}']
    Skill.objects.update_or_create(name="numbers", defaults={"body": "Back.", "enabled": True})
    skilled.runs(ann, says(""), says(""), says(""), says("Hi."), conversation=first.conversation)
    assert "Back." not in skilled.asked[0].system


def test_without_skills_nothing_is_said_of_them(skilled: Skilled, ann: User, numbers: Skill) -> None:
    Skill.objects.update(enabled=False)
    skilled.runs(ann, says("Hi."))
    assert "kill" not in skilled.asked[0].system
    assert not offered(skilled.asked[0]) & OWN
    assert "csv_summary" in offered(skilled.asked[0])


def test_a_name_that_is_none_is_answered_with_those_there_are(skilled: Skilled, ann: User, numbers: Skill) -> None:
    Skill.objects.create(name="off", description="d", body="b", enabled=False)
    both = (call("skills.activate", name="off"), call("skills.deactivate", name="numbers"))
    prompt = skilled.runs(ann, says("", *both), says("Done."))
    assert errors(prompt) == ["unknown_skill", "unknown_skill"]
    unknown, inactive = results_in(skilled.asked[1])
    assert "There is no skill 'off'. There are: numbers." in unknown
    assert "'numbers' is not active. Active: none." in inactive


def test_a_tool_of_two_skills_comes_with_either_and_none_can_take_the_two_that_activate(
    skilled: Skilled, ann: User, numbers: Skill
) -> None:
    Skill.objects.create(name="greedy", description="d", body="b", tools=["csv.summary", "skills.activate", "no.such"])
    skilled.runs(ann, ACTIVATE, says("Done."))
    assert "csv_summary" not in offered(skilled.asked[0])
    assert offered(skilled.asked[0]) >= OWN
    assert "csv_summary" in offered(skilled.asked[1])


def test_it_holds_back_what_other_plugins_push(skilled: Skilled, ann: User) -> None:
    """It prepares after them (S16)."""
    pushed = next(tool for tool in discovery.installed().tools if tool.name == "csv.summary")

    class Pushing(Plugin):
        name = "pushing"

        async def prepare(self, round: Any) -> None:
            round.tools = [*(tool for tool in round.tools if tool is not pushed), pushed]

    Skill.objects.create(name="numbers", description="d", body="b", tools=["csv.summary"])
    skilled.runs(ann, says("Hi."), plugins=[Skills(), Pushing()])
    assert "csv_summary" not in offered(skilled.asked[0])


def test_the_shipped_skill_sums_up_a_file_that_a_command_wrote(skilled: Skilled, ann: User) -> None:
    add_first_skills()
    write = says("", call("shell.run", command="printf 'name,amount\\na,1.50\\nb,2.25\\n' > a.csv"))
    prompt = skilled.runs(ann, ACTIVATE, write, says("", call("csv.summary", path="a.csv")), says("3.75."))
    skilled.approves(prompt, ann)
    skilled.works()
    prompt.refresh_from_db()
    assert prompt.state == "completed"
    assert "amount: number, 2 filled, 1.50 to 2.25, mean 1.88, total 3.75" in results_in(skilled.asked[-1])[-1]
    assert Output.objects.filter(prompt=prompt, type="widget").count() == 1


def test_a_site_starts_with_the_shipped_skills_once() -> None:
    announce_administrator(lambda line: None)
    assert list(Skill.objects.values_list("name", "enabled")) == [("numbers", True)]
    Skill.objects.all().delete()
    announce_administrator(lambda line: None)
    assert not Skill.objects.exists()
    call_command("import_skills", SHIPPED, verbosity=0)
    assert Skill.objects.filter(name="numbers").exists()
