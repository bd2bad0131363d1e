"""Chatting: the first message starts a conversation, and what is typed is never lost."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents.providers.demo.understanding import understand
from conversations.erasure.conversations import erase
from conversations.models import Conversation, Prompt, State
from conversations.pages.chat import views as chat
from conversations.prompts.start import INPUT_MOST
from tests.conversations.live_page import parsed
from tests.conversations.support import Story, asking, person

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(client: Client) -> User:
    user = person("anna", first_name="Anna")
    client.force_login(user)
    return user


def test_the_first_message_starts_a_conversation(client: Client, owner: User) -> None:
    assert "What should the agent do?" in client.get("/").text
    response = client.post("/c/", {"input": "List the files.\r\nAll of them.", "model": "high"})
    conversation = Conversation.objects.get()
    assert response["Location"] == f"/c/{conversation.pk}/#now"
    prompt = conversation.prompts.get()
    assert (prompt.input, prompt.tier, prompt.asked_by) == ("List the files.\nAll of them.", "high", owner)
    page = client.get(f"/c/{conversation.pk}/").text
    assert "<title>List the files. · Agentsite</title>" in page
    assert "Queued <time" in page


@pytest.mark.parametrize("text", ["", "  \n "])
def test_an_empty_message_starts_nothing(client: Client, owner: User, text: str) -> None:
    response = client.post("/c/", {"input": text})
    assert response.status_code == 400
    assert "Write something first." in response.text
    assert not Conversation.objects.exists()


def test_a_message_that_is_too_long_is_kept(client: Client, owner: User) -> None:
    response = client.post("/c/", {"input": "x" * (INPUT_MOST + 1)})
    assert response.status_code == 400
    assert "Send it in parts." in response.text
    assert "x" * (INPUT_MOST + 1) in response.text


def test_a_message_while_a_turn_waits_is_refused_and_kept(client: Client, owner: User) -> None:
    story, _ = asking(owner)
    response = client.post(f"/c/{story.conversation.pk}/prompts/", {"input": "And <b>then</b>?", "model": "high"})
    assert response.status_code == 409
    assert "A turn of this conversation is running or waiting" in response.text
    assert "And &lt;b&gt;then&lt;/b&gt;?</textarea>" in response.text
    assert 'value="high" checked' in response.text
    assert Prompt.objects.count() == 1


def test_the_next_message_follows_a_turn_that_ended(client: Client, owner: User) -> None:
    story = Story(owner)
    story.ends()
    response = client.post(f"/c/{story.conversation.pk}/prompts/", {"input": "And then?"})
    assert response.status_code == 302
    assert [prompt.number for prompt in story.conversation.prompts.all()] == [1, 2]


def test_a_turn_is_stopped_by_a_form_and_what_was_typed_stays(client: Client, owner: User) -> None:
    story, output = asking(owner)
    page = client.get(f"/c/{story.conversation.pk}/").text
    assert f'formaction="/prompts/{story.prompt.pk}/cancel/"' in page
    assert 'aria-label="Send"' not in page
    response = client.post(f"/prompts/{story.prompt.pk}/cancel/", {"input": "better so", "model": "normal"})
    assert "better so</textarea>" in response.text
    assert 'aria-label="Send"' in response.text
    story.prompt.refresh_from_db()
    output.refresh_from_db()
    assert (story.prompt.state, output.gate) == (State.CANCELLED, "cancelled")
    assert client.post(f"/prompts/{story.prompt.pk}/cancel/").status_code == 302


FORMS = {"start_prompt": "/c/{talk}/prompts/", "cancel_prompt": "/prompts/{turn}/cancel/",
         "repeat_prompt": "/prompts/{turn}/again/", "continue_prompt": "/prompts/{turn}/continue/"}  # fmt: skip
"""The URLs of forms about a conversation, by the function that handles them."""


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, owner: User) -> tuple[Story, str, str]:
    """Create a failed turn. Returns the name of such a function, and the URL of its form."""
    story = Story(owner)
    story.ends("failed", "model_error")
    return story, request.param, FORMS[request.param].format(talk=story.conversation.pk, turn=story.prompt.pk)


def goes(form: tuple[Story, str, str], by: User, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let somebody delete the conversation while the form is handled. Returns the URL of the form."""
    story, does, address = form
    real: Callable[..., Prompt] = getattr(chat, does)

    def late(*args: Any, **more: Any) -> Prompt:
        erase(story.conversation, by)
        return real(*args, **more)

    monkeypatch.setattr(chat, does, late)
    return address


def test_what_was_typed_outlives_the_conversation(
    client: Client, owner: User, form: tuple[Story, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleted in another window at the same moment: the text is kept for a new conversation."""
    answer = client.post(goes(form, owner, monkeypatch), {"input": "A long thought.", "model": "high"})
    assert answer.status_code == 410
    problem, composer = (parsed(answer.text).find(name) for name in ("problem", "composer"))
    assert problem
    assert composer
    assert problem.text() == "This conversation was deleted: start a new one. Your text is still here."
    assert composer.attributes["action"] == "/c/"
    assert "A long thought.</textarea>" in answer.text
    assert 'value="high" checked' in answer.text


def test_an_open_page_is_told_that_its_conversation_went(
    client: Client, owner: User, form: tuple[Story, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The field still has the text, and the conversation is not in the list."""
    address = goes(form, owner, monkeypatch)
    answer = client.post(address, {"input": "A long thought."}, headers={"HX-Request": "true"})
    assert answer.status_code == 410
    found = parsed(answer.text)
    problem, beside = found.find("problem"), found.find("list")
    assert problem
    assert beside
    assert problem.text() == "This conversation was deleted: start a new one. Your text is still here."
    assert "Look around." not in beside.text()


def test_who_did_not_delete_it_finds_nothing(
    client: Client, form: tuple[Story, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert client.post(goes(form, person("kim"), monkeypatch), {"input": "Mine?"}).status_code == 404


def test_a_message_to_what_was_deleted_before_is_kept_too(client: Client, owner: User) -> None:
    story = Story(owner)
    erase(story.conversation, owner)
    answer = client.post(f"/c/{story.conversation.pk}/prompts/", {"input": "A long thought."})
    assert (answer.status_code, "A long thought.</textarea>" in answer.text) == (410, True)
    client.force_login(person("bob"))
    assert client.post(f"/c/{story.conversation.pk}/prompts/", {"input": "Mine?"}).status_code == 404


def listed(client: Client, query: str = "") -> dict[str, list[str]]:
    """Return the titles in the sidebar, by heading."""
    found = parsed(client.get("/", {"q": query}).text).find("list")
    assert found
    headings = [each.text() for each in found.elements if each.tag == "h2"]
    rows = [each.elements for each in found.elements if each.tag == "ul"]
    titles = [[row.elements[0].elements[0].text() for row in group] for group in rows]
    return dict(zip(headings, titles, strict=True))


def test_what_waits_stands_first_and_the_rest_by_day(
    client: Client, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One second after midnight, when "yesterday" is two seconds ago; the waiting conversation is the oldest."""
    midnight = datetime(2026, 3, 11, tzinfo=UTC)
    monkeypatch.setattr(timezone, "now", lambda: midnight + timedelta(seconds=1))
    asking(owner)
    said = {"Now.": midnight, "Just now.": midnight - timedelta(seconds=1), "Last week.": midnight - timedelta(days=6)}
    for text, at in (said | {"Long ago.": midnight - timedelta(days=7)}).items():
        conversation = Story(owner, text).ends().conversation
        Conversation.objects.filter(pk=conversation.pk).update(updated_at=at)
    Prompt.objects.filter(state=State.WAITING).update(created_at=midnight - timedelta(days=30))
    days = {"Today": ["Now."], "Yesterday": ["Just now."], "This week": ["Last week."], "Earlier": ["Long ago."]}
    assert listed(client) == {"Waiting for you": ["Run it now."]} | days
    assert list(listed(client)) == ["Waiting for you", *days]
    assert listed(client, "run") == {"Waiting for you": ["Run it now."]}


def test_the_demo_model_is_named(client: Client, owner: User, settings: object) -> None:
    assert "Demo model." not in client.get("/").text
    assert "The demo model knows" not in client.get("/new/").text
    settings.DEMO = True  # type: ignore[attr-defined]
    for address in ("/", "/new/", "/account/", f"/c/{Story(owner).conversation.pk}/"):
        assert "Demo model." in client.get(address).text


def test_what_there_is_to_try_is_understood_by_the_demo_model(client: Client, owner: User, settings: object) -> None:
    """Each teaches one idea: reading runs at once, changes ask first, showing something does not ask."""
    settings.DEMO = True  # type: ignore[attr-defined]
    tries = re.findall(r'name="input" value="([^"]+)"', client.get("/new/").text)
    assert [[task.sentence.tool for task in step] for said in tries[:3] for step in understand(said)] == [
        ["files.list"],
        ["files.write"],
        ["chart.show"],
    ]
    assert tries[3:] == ["help"]
    client.post("/c/", {"input": tries[0]})
    assert Prompt.objects.get().input == tries[0]


def test_older_turns_come_when_asked_for(client: Client, owner: User, monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(owner, "The first one.")
    story.ends()
    Story(owner, "The second one.", story.conversation).ends()
    monkeypatch.setattr("conversations.pages.chat.views.TURNS_MOST", 1)
    page = client.get(f"/c/{story.conversation.pk}/").text
    assert '<p class="typed" dir="auto">The first one.</p>' not in page
    assert "?turns=2" in page
    assert '<p class="typed" dir="auto">The first one.</p>' in client.get(f"/c/{story.conversation.pk}/?turns=2").text
    assert client.get(f"/c/{story.conversation.pk}/?turns=all").status_code == 200
