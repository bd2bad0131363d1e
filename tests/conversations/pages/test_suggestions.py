"""What the page of a new conversation suggests: an administrator's words with a real model, else the demo model's."""

from __future__ import annotations

import html as entities
import re

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django.fixtures import Settings

from agents.models import Suggestion
from conversations.models import Prompt
from tests.conversations.support import person

pytestmark = pytest.mark.django_db
EVIL = '<script>alert("1")</script> \u202egnp.exe & "more"'


@pytest.fixture
def ann(client: Client) -> User:
    found = person("ann")
    client.force_login(found)
    return found


def suggested(client: Client, page: str = "/") -> list[str]:
    shown = client.get(page).content.decode()
    return [entities.unescape(text) for text in re.findall(r'<button name="input" value="([^"]*)"', shown)]


def test_without_any_none_are_shown(client: Client, ann: User, settings: Settings) -> None:
    settings.DEMO = False
    assert suggested(client) == []
    assert "What should the agent do?" in client.get("/").text


@pytest.mark.parametrize("page", ["/", "/new/"])
def test_the_first_three_are_shown_in_their_order_and_sent_as_they_are(
    client: Client, ann: User, settings: Settings, page: str
) -> None:
    settings.DEMO = False
    for text, order in (("Fourth", 9), ("Second", 2), (EVIL, 1), ("Third", 2)):
        Suggestion.objects.create(text=text, order=order)
    assert suggested(client, page) == [EVIL, "Second", "Third"]
    assert "<script>alert" not in client.get(page).text
    client.post("/c/", {"input": suggested(client, page)[1]})
    assert Prompt.objects.get().input == "Second"


def test_the_demo_model_keeps_its_own(client: Client, ann: User, settings: Settings) -> None:
    """It understands only a few requests."""
    settings.DEMO = True
    Suggestion.objects.create(text="Write a poem")
    assert "Write a poem" not in suggested(client)
    assert len(suggested(client)) == 3


def test_an_administrator_writes_them(client: Client, settings: Settings) -> None:
    settings.DEMO = False
    client.force_login(person("ada", is_staff=True, is_superuser=True))
    assert "/admin/agents/suggestion/" in client.get("/admin/").text
    for text, order in (("What is new?", 2), ("Sum up my inbox", 1)):
        sent = client.post("/admin/agents/suggestion/add/", {"text": text, "order": order})
        assert sent.status_code == 302
    assert suggested(client) == ["Sum up my inbox", "What is new?"]
    client.get("/admin/agents/suggestion/")  # the messages about what was saved are shown once
    rows = client.get("/admin/agents/suggestion/").text
    assert rows.index("Sum up my inbox") < rows.index("What is new?")
    refused = client.post("/admin/agents/suggestion/add/", {"text": "", "order": 1})
    assert "This field is required." in refused.text
    client.force_login(person("staff", is_staff=True))
    assert client.get("/admin/agents/suggestion/").status_code == 403
    client.force_login(person("writer", "view_suggestion", "add_suggestion", is_staff=True))
    assert client.get("/admin/agents/suggestion/add/").status_code == 200
