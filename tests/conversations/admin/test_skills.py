"""Skills in the admin: written by administrators, with tools that are there."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from agents.models import Skill
from tests.conversations.live_page import Element, parsed
from tests.conversations.support import person

pytestmark = pytest.mark.django_db

ADD = "/admin/agents/skill/add/"
FIELDS: dict[str, Any] = {"name": "numbers", "description": "Figures.", "body": "# Look\r\nhere", "enabled": "on"}


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(person("chief", is_superuser=True, is_staff=True))
    return client


def test_a_skill_is_written_listed_and_found_by_whether_it_is_enabled(admin: Client) -> None:
    admin.post(ADD, FIELDS | {"tools": ["csv.summary", "files.read"]})
    skill = Skill.objects.get()
    assert (skill.name, skill.body, skill.tools, skill.enabled) == (
        "numbers",
        "# Look\nhere",
        ["csv.summary", "files.read"],
        True,
    )
    assert "csv.summary, files.read" in admin.get("/admin/agents/skill/").text
    row = f"/admin/agents/skill/{skill.pk}/change/"
    assert row in admin.get("/admin/agents/skill/?enabled__exact=1").text
    assert row not in admin.get("/admin/agents/skill/?enabled__exact=0").text
    assert 'href="/admin/agents/skill/"' in admin.get("/admin/").text


def test_tools_are_chosen_by_their_titles_and_those_that_activate_are_no_choice(admin: Client) -> None:
    page = admin.get(ADD).text
    assert "csv.summary: Summarize a CSV file" in page
    assert "skills.activate" not in page


def test_a_tool_that_is_not_installed_is_named_and_refused(admin: Client) -> None:
    """An imported skill may name tools of another site."""
    skill = Skill.objects.create(name="numbers", description="d", body="b", tools=["Bash", "files.read"])
    address = f"/admin/agents/skill/{skill.pk}/change/"
    assert "Bash (not installed)" in admin.get(address).text
    refused = admin.post(address, FIELDS | {"tools": ["Bash", "files.read"]})
    assert "These tools are not installed, remove them: Bash." in refused.text
    admin.post(address, FIELDS | {"tools": ["files.read"]})
    skill.refresh_from_db()
    assert skill.tools == ["files.read"]
    assert "Select a valid choice" in admin.post(ADD, FIELDS | {"name": "x", "tools": ["no.such"]}).text


def test_a_body_has_an_end(admin: Client) -> None:
    assert "at most 100000 characters" in admin.post(ADD, FIELDS | {"body": "x" * 100_001}).text
    assert not Skill.objects.exists()


def test_a_form_that_is_refused_keeps_what_was_written(admin: Client) -> None:
    page = admin.post(ADD, FIELDS | {"name": "no name!", "tools": ["files.read"]}).text
    assert "# Look" in page
    chosen = [each for each in _options(parsed(page)) if "selected" in each.attributes]
    assert "files.read" in [each.attributes["value"] for each in chosen]


def _options(element: Element) -> list[Element]:
    below = [found for child in element.elements for found in _options(child)]
    return [element, *below] if element.tag == "option" else below
