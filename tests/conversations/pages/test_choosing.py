"""The system prompt of a conversation on its pages: chosen for a new one, changed later, and named for each turn."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.models import SystemPrompt
from conversations.erasure.steps import redact
from conversations.models import Account, Conversation, ConversationKind, Prompt, Step
from conversations.prompts.start import start_conversation, start_prompt
from tests.conversations.live_page import parsed
from tests.conversations.recorded import Site
from tests.conversations.support import person
from tests.engine.support import says

pytestmark = pytest.mark.django_db


@pytest.fixture
def ann(client: Client) -> User:
    found = person("ann")
    client.force_login(found)
    return found


@pytest.fixture
def prompts(db: None) -> tuple[SystemPrompt, SystemPrompt]:
    return SystemPrompt.create("House", "Be brief.", is_default=True), SystemPrompt.create("Pirate <b>", "Arr.")


def words(html: str) -> str:
    return " ".join(parsed(html).text().split())


def hidden(html: str) -> list[str]:
    return re.findall(r'<input type="hidden" name="system_prompt" value="(\d+)">', html)


def test_a_new_conversation_is_begun_with_the_chosen_one(
    client: Client, ann: User, prompts: tuple[SystemPrompt, SystemPrompt]
) -> None:
    """By the message field and by a suggestion alike: both forms carry it."""
    pirate = prompts[1]
    page = client.get("/new/").text
    assert hidden(page) == []
    assert "Default (House)" in words(page)
    assert f'href="/new/?system_prompt={pirate.pk}"' in page
    page = client.get(f"/new/?system_prompt={pirate.pk}").text
    assert hidden(page) == [str(pirate.pk)] * 2
    assert "<b>" not in re.sub(r"<b( dir=.auto.)?>(?=\w)", "", page)
    client.post("/c/", {"input": "Hi.", "system_prompt": str(pirate.pk)})
    assert Conversation.objects.get().system_prompt == pirate
    client.post("/c/", {"input": "Hi."})
    assert Conversation.objects.latest("pk").system_prompt is None


@pytest.mark.parametrize("named", ["99", "x", "-1", str(10**30), "\x00"])
def test_one_that_there_is_not_begins_nothing(
    client: Client, ann: User, prompts: tuple[SystemPrompt, SystemPrompt], named: str
) -> None:
    refused = client.post("/c/", {"input": "Hi.", "system_prompt": named})
    assert (refused.status_code, Prompt.objects.count()) == (400, 0)
    assert "There is no system prompt with this id or name." in words(refused.text)
    assert "Hi." in refused.text
    assert hidden(client.get("/new/", {"system_prompt": named}).text) == []


def test_one_that_was_retired_meanwhile_begins_nothing(
    client: Client, ann: User, prompts: tuple[SystemPrompt, SystemPrompt]
) -> None:
    SystemPrompt.objects.filter(pk=prompts[1].pk).update(retired=True)
    refused = client.post("/c/", {"input": "Hi.", "system_prompt": str(prompts[1].pk)})
    assert refused.status_code == 400
    assert "This system prompt is retired: choose another one." in words(refused.text)
    assert hidden(refused.text) == []


def test_the_same_key_with_another_one_is_another_message(
    client: Client, ann: User, prompts: tuple[SystemPrompt, SystemPrompt]
) -> None:
    key = "k" * 20
    assert client.post("/c/", {"input": "Hi.", "key": key}).status_code == 302
    assert client.post("/c/", {"input": "Hi.", "key": key, "system_prompt": str(prompts[1].pk)}).status_code == 400
    assert Prompt.objects.count() == 1


def test_without_two_there_is_nothing_to_choose(client: Client, ann: User) -> None:
    SystemPrompt.create("House", "Be brief.", is_default=True)
    SystemPrompt.create("Old", "Old.", retired=True)
    talk = start_conversation(ann)
    assert "House" not in client.get("/new/").text
    assert "System prompt" not in client.get(talk.get_absolute_url()).text
    assert "this conversation has “Default (House)”" in words(client.get(f"/c/{talk.pk}/system-prompt/").text)


def test_it_is_changed_from_the_menu_and_undone(
    client: Client, ann: User, prompts: tuple[SystemPrompt, SystemPrompt], site: Site
) -> None:
    """A change takes effect with the next turn."""
    talk, place = start_conversation(ann), "system-prompt/"
    first = site.ended(ann, says("Hello."), conversation=talk)
    address = f"{talk.get_absolute_url()}{place}"
    assert f'href="{address}"' in client.get(talk.get_absolute_url()).text
    assert client.get(address).status_code == 200
    assert client.post(address, {"system_prompt": str(prompts[1].pk)}).status_code == 302
    assert "System prompt: Pirate <b>…" in words(client.get(talk.get_absolute_url()).text)
    second = site.ended(ann, says("Arr."), conversation=talk)
    client.post(address, {"system_prompt": ""})
    third = start_prompt(talk, ann, "Hi.")

    def name(prompt: Prompt) -> str:
        return words(client.get(f"/prompts/{prompt.pk}/").text)

    assert "System prompt: House, version 1" in name(first)
    assert "System prompt: Pirate <b>, version 1" in name(second)
    assert "System prompt: House, version 1" in name(third)


def test_a_retired_one_can_be_kept_and_is_offered_nowhere_else(
    client: Client, ann: User, prompts: tuple[SystemPrompt, SystemPrompt]
) -> None:
    pirate = prompts[1]
    mine, other = start_conversation(ann, system_prompt=pirate), start_conversation(ann)
    SystemPrompt.objects.filter(pk=pirate.pk).update(retired=True)
    assert "(retired)" in client.get(f"/c/{mine.pk}/system-prompt/").text
    assert client.post(f"/c/{mine.pk}/system-prompt/", {"system_prompt": str(pirate.pk)}).status_code == 302
    mine.refresh_from_db()
    assert mine.system_prompt == pirate
    assert "Pirate" not in client.get(f"/c/{other.pk}/system-prompt/").text
    refused = client.post(f"/c/{other.pk}/system-prompt/", {"system_prompt": str(pirate.pk)})
    assert refused.status_code == 400
    assert "retired: choose another one" in words(refused.text)


def test_a_run_has_none_to_choose(client: Client, ann: User, prompts: tuple[SystemPrompt, SystemPrompt]) -> None:
    run = start_conversation(ann, kind=ConversationKind.RUN)
    assert "System prompt" not in client.get(run.get_absolute_url()).text
    assert client.get(f"/c/{run.pk}/system-prompt/").status_code == 404


def test_the_inspector_links_to_the_version_for_staff_who_may_see_it(
    client: Client, ann: User, prompts: tuple[SystemPrompt, SystemPrompt], site: Site
) -> None:
    prompt = site.ended(ann, says("Hello."))
    page, link = f"/prompts/{prompt.pk}/", f'href="/admin/agents/systemprompt/{prompts[0].pk}/versions/?after=1"'
    assert link not in client.get(page).text
    User.objects.filter(pk=ann.pk).update(is_staff=True)
    assert link not in client.get(page).text
    User.objects.filter(pk=ann.pk).update(is_superuser=True)
    assert link in client.get(page).text
    root = Step.objects.get(prompt=prompt, path="", type="action_call")
    redact(prompt.conversation, [root.seq], ann, "A secret.")
    assert "System prompt: House, version 1" in words(client.get(page).text)


def test_a_time_zone_is_chosen_on_the_account_page(client: Client, ann: User) -> None:
    """One that is none is refused, and one that this machine does not know any more counts as the site's."""

    def selected() -> list[str]:
        (zones,) = re.findall(r'<select name="zone".*?</select>', client.get("/account/").text, re.DOTALL)
        assert '<optgroup label="Europe">' in zones
        assert zones.index("The site\N{RIGHT SINGLE QUOTATION MARK}s: UTC") < zones.index("<optgroup")
        return re.findall(r'<option value="([^"]*)" selected>', zones)

    assert selected() == [""]
    assert client.post("/account/", {"zone": "Europe/Berlin"}).status_code == 302
    assert Account.objects.get(user=ann).zone == "Europe/Berlin"
    assert selected() == ["Europe/Berlin"]
    for zone in ("Europe/Atlantis", "../../etc/passwd", "localtime", "x" * 100):
        refused = client.post("/account/", {"zone": zone})
        assert refused.status_code == 400
        assert "Select a valid choice" in words(refused.text)
    assert Account.objects.get(user=ann).zone == "Europe/Berlin"
    Account.objects.update(zone="Europe/Atlantis")
    assert selected() == []  # then the first one is: the site's
