"""System prompts in the admin: their versions, who changed what, and the agents that they are chosen for."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.auth.models import Permission, User
from django.db.models.signals import pre_delete
from django.test import Client

from agents.models import AgentPrompt, SystemPrompt, SystemPromptVersion
from conversations.prompts.start import start_conversation, start_prompt
from tests.conversations.live_page import parsed
from tests.conversations.recorded import Site
from tests.conversations.support import person
from tests.conversations.travel import installed

pytestmark = pytest.mark.django_db

LIST = "/admin/agents/systemprompt/"
NO_AGENTS: dict[str, Any] = {"agents-TOTAL_FORMS": "0", "agents-INITIAL_FORMS": "0"}


@pytest.fixture
def chief(db: None) -> User:
    return person("chief", is_superuser=True, is_staff=True, first_name="Ada")


@pytest.fixture
def admin(client: Client, chief: User) -> Client:
    client.force_login(chief)
    return client


@pytest.fixture
def greeting(chief: User) -> SystemPrompt:
    return SystemPrompt.create("Greeting", "Be polite.\nBe brief.", chief)


def staff(*permissions: str) -> Client:
    client, stan = Client(), person("stan", *permissions, is_staff=True)
    client.force_login(stan)
    return client


def page_of(prompt: SystemPrompt) -> str:
    return f"{LIST}{prompt.pk}/change/"


def versions_of(prompt: SystemPrompt) -> str:
    return f"{LIST}{prompt.pk}/versions/"


def form(text: str = "Be polite.\nBe brief.", opened: int = 1, **more: Any) -> dict[str, Any]:
    return {**NO_AGENTS, "name": "Greeting", "text": text, "opened": str(opened), **more}


def texts(prompt: SystemPrompt) -> list[str]:
    return list(prompt.versions.order_by("number").values_list("text", flat=True))


def words(html: str) -> str:
    return " ".join(parsed(html).text().split())


# Versions


def test_a_changed_text_makes_a_version_and_any_other_change_makes_none(
    admin: Client, greeting: SystemPrompt, chief: User
) -> None:
    """Browsers send other line ends; that is no change."""
    admin.post(page_of(greeting), form("Be polite.\r\nBe brief.", name="Hello", default="on"))
    greeting.refresh_from_db()
    assert (greeting.name, greeting.is_default, len(texts(greeting))) == ("Hello", True, 1)
    assert "Text" not in LogEntry.objects.latest("pk").get_change_message()
    admin.post(page_of(greeting), form("Be polite.\r\nBe kind."))
    assert texts(greeting) == ["Be polite.\nBe brief.", "Be polite.\nBe kind."]
    assert greeting.latest().changed_by == chief
    shown = words(admin.get(page_of(greeting)).text)
    assert re.search(r"Versions .* 2 Ada .* 1 Ada", shown)


def test_the_second_of_two_administrators_is_told_and_loses_nothing(admin: Client, greeting: SystemPrompt) -> None:
    """Sent again, the text is the next version; that of the first stays where it is."""
    greeting.write("Theirs.", person("bea"), opened=1)
    refused = admin.post(page_of(greeting), form("Mine."))
    assert refused.status_code == 200
    assert "bea saved version 2 while you had this page open" in words(refused.text)
    assert f"{versions_of(greeting)}?before=1&amp;after=2" in refused.text
    assert "Mine." in refused.text
    assert texts(greeting)[1:] == ["Theirs."]
    (opened,) = re.findall(r'name="opened" value="(\d+)"', refused.text)
    assert admin.post(page_of(greeting), form("Mine.", int(opened))).status_code == 302
    assert texts(greeting)[1:] == ["Theirs.", "Mine."]


def test_a_form_without_its_version_is_refused(admin: Client, greeting: SystemPrompt) -> None:
    sent = form("Mine.")
    del sent["opened"]
    assert "Reload the page" in admin.post(page_of(greeting), sent).text
    assert len(texts(greeting)) == 1


def test_any_two_versions_are_compared(admin: Client, greeting: SystemPrompt) -> None:
    greeting.write("Be polite.\nBe kind.", None)
    greeting.write("Be polite.\nBe kind.\n<script>alert(1)</script>\u202e", None)
    one = admin.get(f"{versions_of(greeting)}?before=1&after=3").text
    assert "Changes from version 1" in one
    assert re.findall(r'<tr class="(add|del)">', one) == ["del", "add", "add"]
    assert "<script>alert(1)" not in one
    assert "\u202e" not in one
    other_way = admin.get(f"{versions_of(greeting)}?before=2&after=1").text
    assert re.findall(r'<tr class="(add|del)">', other_way) == ["del", "add"]
    latest = admin.get(versions_of(greeting)).text
    assert re.search(r"Version 3 of 3, saved by <b>the site</b>", latest)
    assert "Changes from version 2" in latest
    assert "Changes" not in words(admin.get(f"{versions_of(greeting)}?after=1").text)


@pytest.mark.parametrize(
    "query", ["after=4", "after=0", "after=x", "before=9", "after=", "after=%00", f"after={10**17}"]
)
def test_a_version_that_there_is_not_is_not_found(admin: Client, greeting: SystemPrompt, query: str) -> None:
    assert admin.get(f"{versions_of(greeting)}?{query}").status_code == 404
    assert admin.get(f"{LIST}99/versions/").status_code == 404


def test_a_text_is_used_again_as_the_next_version(admin: Client, greeting: SystemPrompt) -> None:
    greeting.write("Be rude.", None)
    page = admin.get(f"{versions_of(greeting)}?after=1").text
    assert "Use this text again" in page
    assert "Use this text again" not in admin.get(versions_of(greeting)).text  # it is in use
    assert admin.post(f"{versions_of(greeting)}?after=1", {"opened": "2"}).status_code == 302
    assert texts(greeting) == ["Be polite.\nBe brief.", "Be rude.", "Be polite.\nBe brief."]
    assert "Used the text of version 1 again." in LogEntry.objects.latest("pk").get_change_message()


def test_it_is_not_used_again_over_a_version_that_nobody_has_seen(admin: Client, greeting: SystemPrompt) -> None:
    greeting.write("Be rude.", None)
    greeting.write("Be kind.", person("bea"))
    for opened in ("2", "", "x"):
        refused = admin.post(f"{versions_of(greeting)}?after=1", {"opened": opened})
        assert refused.status_code == 409
        assert "bea saved version 3 in the meantime" in words(refused.text)
    assert len(texts(greeting)) == 3


def test_looking_changes_nothing(admin: Client, greeting: SystemPrompt) -> None:
    greeting.write("Be rude.", None)
    for page in (page_of(greeting), versions_of(greeting), f"{versions_of(greeting)}?after=1&opened=2"):
        assert admin.get(page).status_code == 200
    assert len(texts(greeting)) == 2


def test_who_may_only_see_them_changes_nothing(greeting: SystemPrompt) -> None:
    greeting.write("Be rude.", None)
    client = staff("view_systemprompt")
    page = client.get(page_of(greeting))
    assert "Be rude." in page.text
    assert 'name="text"' not in page.text
    assert "Use this text again" not in client.get(f"{versions_of(greeting)}?after=1").text
    assert client.post(page_of(greeting), form("Mine.", 2)).status_code == 403
    assert client.post(f"{versions_of(greeting)}?after=1", {"opened": "2"}).status_code == 403
    assert len(texts(greeting)) == 2


def test_who_may_see_none_sees_none(greeting: SystemPrompt) -> None:
    client = staff("view_skill")
    for page in (LIST, page_of(greeting), versions_of(greeting)):
        assert client.get(page).status_code == 403


def test_names_in_braces_that_are_no_variables_are_told(admin: Client, greeting: SystemPrompt) -> None:
    sent = form('Call them {name}. Answer as {"name": "{user}"}. {today}', _continue="1")
    told = words(admin.post(page_of(greeting), sent, follow=True).text)
    assert "not variables, and stay as they are written: {name}, {today}." in told
    assert "The variables are {user}, {date}, {site}." in told
    assert "not variables" not in words(admin.post(page_of(greeting), form("{user}", 2), follow=True).text)


# Retiring and deleting


def test_the_default_is_not_retired(admin: Client, greeting: SystemPrompt) -> None:
    told = admin.post(page_of(greeting), form(default="on", retired="on"))
    assert "The default cannot be retired." in told.text
    admin.post(page_of(greeting), form(default="on"))
    assert admin.post(page_of(greeting), form(retired="on")).status_code == 302  # and it is the default no more
    greeting.refresh_from_db()
    assert (greeting.is_default, greeting.retired) == (False, True)
    assert "Retired" in words(admin.get(LIST).text)


def test_only_one_that_no_turn_has_used_is_deleted(admin: Client, greeting: SystemPrompt, ann: User) -> None:
    unused = SystemPrompt.create("Unused", "One.")
    start_prompt(start_conversation(ann, system_prompt=greeting), ann, "Hi.")
    assert "cannot be deleted" in words(admin.get(page_of(greeting)).text)
    assert admin.post(f"{LIST}{greeting.pk}/delete/", {"post": "yes"}).status_code == 403
    both = {"action": "delete_selected", "_selected_action": [greeting.pk, unused.pk], "post": "yes"}
    admin.post(LIST, both)
    assert SystemPrompt.objects.count() == 2
    assert admin.post(f"{LIST}{unused.pk}/delete/", {"post": "yes"}).status_code == 302
    assert list(SystemPrompt.objects.all()) == [greeting]


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.django_db(transaction=True)
def test_one_that_is_used_while_it_is_deleted_stays(admin: Client, *, at_once: bool) -> None:
    """Whether it is deleted on its page, or from the list together with another."""
    both = [SystemPrompt.create(name, "One.") for name in ("First", "Second")]

    def use(**sent: Any) -> None:
        SystemPrompt.objects.filter(name="Second").update(used=True)

    ticked: dict[str, Any] = {
        "action": "delete_selected",
        "_selected_action": [each.pk for each in both],
        "post": "yes",
    }
    pre_delete.connect(use, sender=SystemPromptVersion)
    try:
        where, sent = (LIST, ticked) if at_once else (f"{LIST}{both[1].pk}/delete/", {"post": "yes"})
        told = admin.post(where, sent, follow=True)
    finally:
        pre_delete.disconnect(use, sender=SystemPromptVersion)
    assert "Nothing was deleted" in words(told.text)
    assert list(SystemPrompt.objects.all()) == both
    assert not LogEntry.objects.filter(action_flag=DELETION).exists()


# Agents


def agent_form(policy: str, **more: Any) -> dict[str, Any]:
    return form(**more) | {"agents-TOTAL_FORMS": "1", "agents-0-policy": policy}


def test_it_is_chosen_for_installed_agents_only(
    admin: Client, greeting: SystemPrompt, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(site, monkeypatch)
    page = admin.get(page_of(greeting)).text
    assert re.findall(r'<option value="([\w.]+)"', page) == ["agent", "travel.guide"] * 2  # and in the empty form
    for none in ("travel.plan", "model", "nothing"):
        assert "Select a valid choice" in admin.post(page_of(greeting), agent_form(none)).text
    assert admin.post(page_of(greeting), agent_form("travel.guide")).status_code == 302
    assert AgentPrompt.objects.get().prompt == greeting


def test_an_agent_has_one(admin: Client, greeting: SystemPrompt, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(site, monkeypatch)
    AgentPrompt.objects.create(policy="travel.guide", prompt=SystemPrompt.create("Other", "O."))
    told = admin.post(page_of(greeting), agent_form("travel.guide"))
    assert "Another system prompt is chosen for this agent" in told.text


def test_an_agent_that_is_gone_stays_listed(admin: Client, greeting: SystemPrompt) -> None:
    AgentPrompt.objects.create(policy="travel.gone", prompt=greeting)
    assert "travel.gone (not installed)" in admin.get(page_of(greeting)).text


def test_choosing_agents_is_a_permission_of_its_own(greeting: SystemPrompt) -> None:
    client = staff("view_systemprompt", "change_systemprompt")
    assert client.post(page_of(greeting), form("Mine.")).status_code == 302
    client.post(page_of(greeting), agent_form("agent", text="Mine.", opened=2))
    assert not AgentPrompt.objects.exists()
    stan = User.objects.get(username="stan")
    stan.user_permissions.add(*Permission.objects.filter(content_type__model="agentprompt"))
    client.post(page_of(greeting), agent_form("agent", text="Mine.", opened=2))
    assert AgentPrompt.objects.get().policy == "agent"
