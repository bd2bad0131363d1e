"""Blueprints in the admin: written by administrators, and those that agents proposed read before they are enabled."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db.models.signals import post_save
from django.test import Client

from agents.inventory import collect
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
    gone = Blueprint.objects.create(name="Gone", when="w", text="t")
    gone.groups.add(sales := Group.objects.create(name="Sales"))
    sales.delete()
    proposed = Blueprint.objects.create(name="New", when="w", text="t", enabled=False, proposed=True, proposed_by=ann)
    page = admin.get(LIST).text
    said = ("Support", "everybody", "nobody: its groups", "Enabled", "Disabled", "Proposed", "the agent of ann")
    assert all(words in page for words in said)
    assert "w…" in page
    for state, names in (("enabled", ["Gone", "On"]), ("disabled", ["Off"]), ("proposed", ["New"])):
        rows = admin.get(f"{LIST}?state={state}").context["cl"].result_list
        assert [row.name for row in rows] == names
    assert len(admin.get(f"{LIST}?state=x").context["cl"].result_list) == 4
    assert "the agent of ann" in admin.get(f"{LIST}{proposed.pk}/change/").text
    assert f'href="{LIST}"' in admin.get("/admin/").text


def test_several_are_enabled_and_disabled_at_once_and_found_accordingly(admin: Client, ann: User) -> None:
    made = [Blueprint.objects.create(name=n, when="Refunds", text="t", enabled=False, proposed_by=ann) for n in "ab"]
    ids = [blueprint.pk for blueprint in made]
    page = admin.post(LIST, {"action": "enable", "_selected_action": ids}, follow=True).text
    assert "Enabled 2 blueprints." in page
    again = admin.post(LIST, {"action": "enable", "_selected_action": ids}, follow=True).text
    assert "No blueprint was changed." in again
    assert "Enabled 0" not in again
    assert found("refund") == ids
    assert (
        "Disabled 1 blueprint."
        in admin.post(LIST, {"action": "disable", "_selected_action": ids[:1]}, follow=True).text
    )
    assert found("refund") == ids[1:]
    assert admin.get(f"{LIST}{ids[0]}/history/").text.count("Disabled.") == 1


def test_one_that_was_enabled_is_never_proposed_again_and_one_that_was_not_stays_so(admin: Client, ann: User) -> None:
    for name in "ab":
        Blueprint.objects.create(name=name, when="w", text="t", enabled=False, proposed=True, proposed_by=ann)
    ann.delete()
    one = Blueprint.objects.get(name="a")
    for action in ("enable", "disable"):
        admin.post(LIST, {"action": action, "_selected_action": [one.pk]})
    assert [row.name for row in admin.get(f"{LIST}?state=proposed").context["cl"].result_list] == ["b"]
    assert collect()["blueprints"] == {"enabled": 0, "disabled": 1, "proposed": 1}


def test_what_cannot_be_seen_is_marked_and_not_enabled_unread(admin: Client) -> None:
    hidden = "Pay \N{RIGHT-TO-LEFT OVERRIDE}evil\N{ZERO WIDTH SPACE}."
    one = Blueprint.objects.create(name=hidden, when=hidden, text=hidden, enabled=False, proposed=True)
    plain = Blueprint.objects.create(name="Plain", when="w", text="t", enabled=False, proposed=True)
    assert admin.get(LIST).text.count("U+202E") == 2
    page = admin.get(f"{LIST}{one.pk}/change/").text
    assert "Beware: it has characters that cannot be seen" in page
    assert page.count(">U+202E<") == page.count(">U+200B<") == 3
    assert "Pay [U+202E]evil" in page, "the title"
    assert "Beware" not in admin.get(f"{LIST}{plain.pk}/change/").text
    page = admin.post(LIST, {"action": "enable", "_selected_action": [one.pk, plain.pk]}, follow=True).text
    assert "Enabled 1 blueprint." in page
    assert "“Pay [U+202E]evil[U+200B].” is not enabled: it was proposed" in page
    assert list(Blueprint.objects.filter(enabled=True)) == [plain]


def test_a_text_that_is_saved_while_several_are_enabled_is_kept(admin: Client) -> None:
    made = [Blueprint.objects.create(name=n, when="w", text="t", enabled=False) for n in "ab"]

    def meanwhile(instance: Blueprint, **_: Any) -> None:
        if instance.pk == made[0].pk:
            Blueprint.objects.filter(pk=made[1].pk).update(text="Better.")

    post_save.connect(meanwhile, sender=Blueprint)
    try:
        admin.post(LIST, {"action": "enable", "_selected_action": [each.pk for each in made]})
    finally:
        post_save.disconnect(meanwhile, sender=Blueprint)
    assert list(Blueprint.objects.values_list("text", "enabled")) == [("t", True), ("Better.", True)]


def test_who_is_told_is_never_left_open(admin: Client) -> None:
    """Groups restrict it; without any it is everybody's only if the form says so."""
    support = Group.objects.create(name="Support")
    admin.post(ADD, FIELDS | {"groups": [support.pk]})
    one = Blueprint.objects.get()
    assert one.restricted
    support.delete()
    address = f"{LIST}{one.pk}/change/"
    page = admin.post(address, FIELDS | {"restricted": "on", "text": "What I wrote."}).text
    assert "Choose a group, or untick" in page
    assert "What I wrote." in page
    admin.post(address, FIELDS)
    one.refresh_from_db()
    assert (one.restricted, one.enabled, one.version) == (False, True, 2)


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
