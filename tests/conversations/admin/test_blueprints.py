"""Blueprints in the admin: written by administrators, and those that agents proposed read before they are enabled."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from agents.models import Blueprint
from agents.search.index import best
from tests.conversations.support import person

pytestmark = pytest.mark.django_db

LIST = "/admin/agents/blueprint/"
ADD = f"{LIST}add/"
FIELDS: dict[str, Any] = {
    "name": "Refunds",
    "when": "Somebody wants\r\ntheir money back.",
    "tags": "credit note,  voucher ,credit note,",
    "text": "# Look\r\nhere",
    "enabled": "on",
}


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(person("chief", is_superuser=True, is_staff=True))
    return client


def found(text: str) -> list[int]:
    return [match.row for match in best(Blueprint.COLLECTION, text, 5)]


def test_one_is_written_found_and_changed(admin: Client) -> None:
    support = Group.objects.create(name="Support")
    admin.post(ADD, FIELDS | {"groups": [support.pk]})
    blueprint = Blueprint.objects.get()
    assert (blueprint.when, blueprint.tags, blueprint.text, blueprint.enabled) == (
        "Somebody wants their money back.",
        ["credit note", "voucher"],
        "# Look\nhere",
        True,
    )
    assert (list(blueprint.groups.all()), blueprint.version, blueprint.proposed_by) == ([support], 1, None)
    assert found("vouchers") == [blueprint.pk]
    address = f"{LIST}{blueprint.pk}/change/"
    assert 'value="credit note, voucher"' in admin.get(address).text
    admin.post(address, FIELDS | {"tags": "", "text": "Elsewhere"})
    blueprint.refresh_from_db()
    assert (blueprint.tags, blueprint.text, blueprint.version, blueprint.groups.count()) == ([], "Elsewhere", 2, 0)
    assert found("vouchers") == []


def test_the_list_says_for_whom_they_are_and_how_they_stand(admin: Client, ann: User) -> None:
    on = Blueprint.objects.create(name="On", when="w " * 200, text="t")
    on.groups.add(Group.objects.create(name="Support"))
    Blueprint.objects.create(name="Off", when="w", text="t", enabled=False)
    proposed = Blueprint.objects.create(name="New", when="w", text="t", enabled=False, proposed_by=ann)
    page = admin.get(LIST).text
    assert all(
        words in page for words in ("Support", "everybody", "Enabled", "Disabled", "Proposed", "the agent of ann")
    )
    assert "w…" in page
    for state, name in (("enabled", "On"), ("disabled", "Off"), ("proposed", "New")):
        rows = admin.get(f"{LIST}?state={state}").context["cl"].result_list
        assert [row.name for row in rows] == [name]
    assert len(admin.get(f"{LIST}?state=x").context["cl"].result_list) == 3
    assert "the agent of ann" in admin.get(f"{LIST}{proposed.pk}/change/").text
    assert f'href="{LIST}"' in admin.get("/admin/").text


def test_several_are_enabled_and_disabled_at_once_and_found_accordingly(admin: Client, ann: User) -> None:
    made = [Blueprint.objects.create(name=n, when="Refunds", text="t", enabled=False, proposed_by=ann) for n in "ab"]
    ids = [blueprint.pk for blueprint in made]
    page = admin.post(LIST, {"action": "enable", "_selected_action": ids}, follow=True).text
    assert "Enabled 2 blueprints." in page
    assert found("refund") == ids
    assert (
        "Disabled 1 blueprint."
        in admin.post(LIST, {"action": "disable", "_selected_action": ids[:1]}, follow=True).text
    )
    assert found("refund") == ids[1:]
    assert admin.get(f"{LIST}{ids[0]}/history/").text.count("Disabled.") == 1


def test_deleting_one_takes_its_words_along(admin: Client) -> None:
    one = Blueprint.objects.create(name="Refunds", when="w", text="t")
    admin.post(f"{LIST}{one.pk}/delete/", {"post": "yes"})
    assert (Blueprint.objects.count(), found("refunds")) == (0, [])


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"name": ""}, "This field is required"),
        ({"when": "w" * 1025}, "at most 1024 characters"),
        ({"text": "x" * 20_001}, "at most 20000 characters"),
        ({"tags": ",".join(map(str, range(21)))}, "These are 21 tags: leave at most 20."),
        ({"tags": "t" * 51}, "a tag has at most 50 characters"),
        ({"name": "Taken"}, "Blueprint with this Name already exists"),
        ({"groups": ["7"]}, "Select a valid choice"),
    ],
)
def test_what_is_wrong_is_said_and_what_was_written_is_kept(admin: Client, wrong: dict[str, Any], says: str) -> None:
    Blueprint.objects.create(name="Taken", when="w", text="t")
    page = admin.post(ADD, FIELDS | {"text": "What I wrote."} | wrong).text
    assert says in page
    assert wrong.get("text", "What I wrote.")[:100] in page
    assert Blueprint.objects.count() == 1


def test_two_who_save_at_once_make_two_versions(admin: Client) -> None:
    """A version names one text: what stood in a round is known by it."""
    one = Blueprint.objects.create(name="Refunds", when="w", text="t")
    other = Blueprint.objects.get()
    one.save()
    other.save()
    assert (one.version, other.version) == (2, 3)
