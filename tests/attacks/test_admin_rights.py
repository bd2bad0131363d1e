"""Staff who try to get more rights, through every form of the admin and with every right but a superuser's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import NoReverseMatch, reverse

from tests.conversations.support import PASSWORD, Story, person

pytestmark = pytest.mark.django_db

USERS = "/admin/auth/user/"
PEOPLE = [f"{right}_user" for right in ("view", "add", "change", "delete")]
STOLEN = "another horse battery"


@pytest.fixture
def chief() -> User:
    return person("chief", is_superuser=True, is_staff=True)


@pytest.fixture
def anna() -> User:
    return person("anna")


def rights() -> dict[str, Any]:
    """What everybody may do, and what signs in those who may do more than the attacker: what no form may change."""
    return {
        user.username: (
            *(user.is_active, user.is_staff, user.is_superuser),
            sorted(user.groups.values_list("name", flat=True)),
            sorted(user.user_permissions.values_list("codename", flat=True)),
            *((user.password, user.email) if user.is_superuser else ()),
        )
        for user in User.objects.filter(username__in=("chief", "boss", "anna", "staff"))
    } | {group.name: sorted(group.permissions.values_list("codename", flat=True)) for group in Group.objects.all()}


def forms(client: Client) -> Iterator[str]:
    """Every address of the admin, with the id of every row that it could be for."""
    for model, pages in admin.site._registry.items():
        ids = list(model._default_manager.values_list("pk", flat=True)[:5])
        for url in pages.get_urls():
            name = f"admin:{url.name}"
            if url.name and not url.pattern.regex.groups:
                yield reverse(name)
            elif url.name:
                for row in ids:
                    try:
                        yield reverse(name, args=[row])
                    except NoReverseMatch:
                        continue


def grab(username: str, groups: list[int], permissions: list[int]) -> dict[str, Any]:
    """Everything that any of the forms could take."""
    names = {"username": username, "name": "Members", "first_name": "x", "last_name": "x", "email": "thief@example.com"}
    flags = dict.fromkeys(("is_active", "is_staff", "is_superuser", "enabled", "set_usable_password"), "on")
    words = dict.fromkeys(("password", "password1", "password2"), STOLEN) | {"usable_password": "true"}
    quota = {"quota-TOTAL_FORMS": 0, "quota-INITIAL_FORMS": 0, "quota-MIN_NUM_FORMS": 0, "quota-MAX_NUM_FORMS": 1}
    dates = {f"{name}_{part}": "" for name in ("last_login", "date_joined") for part in (0, 1)}
    dates |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00"}
    rest = {"groups": groups, "user_permissions": permissions, "permissions": permissions, "body": "x", "text": "x"}
    return {**names, **flags, **words, **quota, **dates, **rest, "description": "x", "reason": "", "post": "yes"}


def smaller_rights() -> list[list[str]]:
    """Each right alone, those of each table together, and all of them."""
    tables = ["user", "group", "permission", "apikey", "step", "conversation", "skill", "systemprompt", "quota"]
    each = [f"{right}_{table}" for table in tables for right in ("view", "add", "change", "delete")]
    return [*([one] for one in each), *(each[at : at + 4] for at in range(0, len(each), 4)), each[:8], ["*"]]


@pytest.mark.parametrize("names", smaller_rights(), ids="+".join)
def test_no_form_gives_more_rights(client: Client, chief: User, anna: User, names: list[str]) -> None:
    """Whatever staff may do, they stay what they are, and so do all others."""
    Story(anna).ends()
    boss = Group.objects.create(name="Bosses")
    boss.permissions.set(Permission.objects.all())
    person("boss", is_staff=True).groups.add(boss)
    staff = person("staff", *names, is_staff=True)
    if names == ["*"]:
        staff.user_permissions.set(Permission.objects.all())
    client.force_login(User.objects.get(pk=staff.pk))
    before = rights()
    everything = list(Permission.objects.values_list("pk", flat=True))
    for address in forms(client):
        for user in User.objects.all():
            if f"/user/{user.pk}/" in address or "/user/" not in address:
                client.post(address, grab(user.username, [boss.pk], everything))
                break
        else:
            client.post(address, grab("new", [boss.pk], everything))
    assert rights() == before
    made = User.objects.exclude(username__in=before)
    assert not made.filter(is_superuser=True).exists()
    assert not made.filter(is_staff=True).exists()
    assert not made.filter(groups=boss).exists()


def test_staff_who_may_change_people_change_those_who_may_no_more(client: Client, chief: User, anna: User) -> None:
    """The name of an ordinary person, and a new password for them: yes. Their rights are shown, but no fields."""
    client.force_login(person("staff", *PEOPLE, is_staff=True))
    page = client.get(f"{USERS}{anna.pk}/change/")
    assert page.status_code == 200
    for field in ("is_superuser", "is_staff", "is_active", "groups", "user_permissions"):
        assert f'name="{field}"' not in page.text
    kept = grab("anna", [], [])
    assert client.post(f"{USERS}{anna.pk}/change/", kept).status_code == 302
    assert client.post(f"{USERS}{anna.pk}/password/", kept).status_code == 302
    anna.refresh_from_db()
    assert (anna.email, anna.is_superuser, anna.is_staff) == ("thief@example.com", False, False)
    assert anna.check_password(STOLEN)


@pytest.mark.parametrize("active", [True, False])
@pytest.mark.parametrize("more", ["superuser", "group", "permission"])
def test_nobody_takes_over_who_may_do_more(client: Client, anna: User, more: str, active: bool) -> None:
    """Their page is shown without fields; changing it or their password is forbidden, also while they are inactive."""
    if more == "group":
        group = Group.objects.create(name="Approvers")
        group.permissions.add(Permission.objects.get(codename="delete_apikey"))
        anna.groups.add(group)
    if more == "permission":
        anna.user_permissions.add(Permission.objects.get(codename="delete_apikey"))
    anna.is_superuser, anna.is_active = more == "superuser", active
    anna.save()
    client.force_login(person("staff", *PEOPLE, is_staff=True))
    assert client.get(f"{USERS}{anna.pk}/change/").status_code == 200
    assert 'name="email"' not in client.get(f"{USERS}{anna.pk}/change/").text
    for page in ("change", "password"):
        assert client.post(f"{USERS}{anna.pk}/{page}/", grab("anna", [], [])).status_code == 403
    assert client.get(f"{USERS}{anna.pk}/password/").status_code == 403
    anna.refresh_from_db()
    assert anna.check_password(PASSWORD)
    assert not anna.email


def test_a_superuser_still_changes_all_of_it(client: Client, chief: User, anna: User) -> None:
    """Flags, groups and permissions of others, and other superusers' rows."""
    client.force_login(chief)
    group = Group.objects.create(name="Approvers")
    may = Permission.objects.get(codename="view_step").pk
    sent = grab("anna", [group.pk], [may])
    assert client.post(f"{USERS}{anna.pk}/change/", sent).status_code == 302
    anna.refresh_from_db()
    assert (anna.is_staff, anna.is_superuser) == (True, True)
    assert list(anna.groups.all()) == [group]
    assert client.post(f"{USERS}{anna.pk}/password/", sent).status_code == 302
    renamed = {"name": "Deciders", "permissions": [may]}
    assert client.post(f"/admin/auth/group/{group.pk}/change/", renamed).status_code == 302
    assert Group.objects.filter(name="Deciders", permissions=may).exists()
