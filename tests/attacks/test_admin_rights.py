"""Staff who try to get more rights, through every form of the admin and with every right but a superuser's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import ModelAdmin
from django.contrib.auth.models import Group, Permission, User
from django.db.models import Model
from django.template.base import Template
from django.test import Client, RequestFactory
from django.urls import NoReverseMatch, reverse

from conversations.accounts.groups import MEMBERS
from conversations.models import Quota
from tests.budget import share
from tests.conversations.support import PASSWORD, Story, person

pytestmark = pytest.mark.django_db

USERS = "/admin/auth/user/"
PEOPLE = [f"{right}_user" for right in ("view", "add", "change", "delete")]
QUOTAS = [f"{right}_quota" for right in ("view", "add", "change", "delete")]
FORM = "application/x-www-form-urlencoded"
STOLEN = "another horse battery"


@pytest.fixture
def chief() -> User:
    return person("chief", is_superuser=True, is_staff=True)


@pytest.fixture
def anna() -> User:
    return person("anna")


def rights() -> dict[str, Any]:
    """What everybody may do, how much, and what signs in all but ordinary people: what no form may change."""
    return {
        user.username: (
            *(user.is_active, user.is_staff, user.is_superuser),
            sorted(user.groups.values_list("name", flat=True)),
            sorted(user.user_permissions.values_list("codename", flat=True)),
            list(Quota.objects.filter(user=user).values_list("storage_mb", flat=True)),
            *((user.password, user.email) if user.username in ("chief", "boss", "peer", "eve") else ()),
        )
        for user in User.objects.filter(username__in=("chief", "boss", "peer", "eve", "anna", "staff"))
    } | {group.name: sorted(group.permissions.values_list("codename", flat=True)) for group in Group.objects.all()}


def forms(client: Client) -> Iterator[str]:
    """Every address of the admin, with the id of every person, or of one other row that it could be for."""
    for model, pages in admin.site._registry.items():
        ids = list(model._default_manager.values_list("pk", flat=True)[: None if model is User else 1])
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


def actions(chief: User) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every action of the admin, on every row, as a superuser is offered it; with the address that it is sent to."""
    request = RequestFactory().get("/admin/")
    request.user = chief
    for model, pages in admin.site._registry.items():
        assert isinstance(pages, ModelAdmin)
        rows = list(model._default_manager.values_list("pk", flat=True))
        for name in {"delete_selected", *pages.get_actions(request)}:
            marked = {"action": name, "index": 0, "select_across": 1, ACTION_CHECKBOX_NAME: rows}
            yield reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"), marked


def grab(user: User | None, groups: list[int], permissions: list[int]) -> dict[str, Any]:
    """Everything that any of the forms could take, with a filled inline."""
    name = user.username if user else "new"
    names = {"username": name, "name": "Members", "first_name": "x", "last_name": "x", "email": "thief@example.com"}
    flags = dict.fromkeys(("is_active", "is_staff", "is_superuser", "enabled", "set_usable_password"), "on")
    words = dict.fromkeys(("password", "password1", "password2"), STOLEN) | {"usable_password": "true"}
    quota = {"quota-TOTAL_FORMS": 1, "quota-INITIAL_FORMS": 0, "quota-MIN_NUM_FORMS": 0, "quota-MAX_NUM_FORMS": 1}
    filled = {"quota-0-user": user.pk if user else "", "quota-0-id": "", "quota-0-storage_mb": 900_000}
    dates = {f"{name}_{part}": "" for name in ("last_login", "date_joined") for part in (0, 1)}
    dates |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00"}
    rest = {"groups": groups, "user_permissions": permissions, "permissions": permissions, "body": "x", "text": "x"}
    return {
        **names,
        **flags,
        **words,
        **quota,
        **filled,
        **dates,
        **rest,
        "description": "x",
        "reason": "",
        "post": "yes",
    }


def send(client: Client, address: str, fields: dict[str, Any]) -> int:
    """Post a form as a browser does; return the status."""
    return client.post(address, urlencode(fields, doseq=True), content_type=FORM).status_code


def smaller_rights() -> list[list[str]]:
    """All of them, those that belong together, and each right alone."""
    each = [f"{model._meta.app_label}.{name}" for model in apps.get_models() for name in permissions_of(model)]
    return [["*"], PEOPLE, [*PEOPLE, *QUOTAS], [*PEOPLE, "decide_approval"], *([one] for one in each)]


def permissions_of(model: type[Model]) -> list[str]:
    """The permissions that Django makes for a table."""
    usual = [f"{right}_{model._meta.model_name}" for right in model._meta.default_permissions]
    return [*usual, *(name for name, _ in model._meta.permissions)]


def test_the_rights_are_all_there_are() -> None:
    each = {names[0] for names in smaller_rights() if len(names) == 1} - {"*"}
    rows = Permission.objects.values_list("content_type__app_label", "codename")
    assert each == {f"{app}.{name}" for app, name in rows}


@pytest.mark.parametrize("names", [*smaller_rights()[:4], *share(smaller_rights()[4:], of=8)], ids="+".join)
def test_no_form_gives_more_rights(
    client: Client, chief: User, anna: User, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever staff may do, they stay what they are, and so do all others: superusers, equals, and who approves."""
    monkeypatch.setattr(Template, "_render", lambda *_: "")  # nobody looks at the pages, which take most of the time
    Story(anna).ends()
    boss = Group.objects.create(name="Bosses")
    most = Permission.objects.filter(codename__in=("change_user", "decide_approval"))
    boss.permissions.set(most)
    person("boss", is_staff=True).groups.add(boss)
    person("eve", "decide_approval")
    staff, peer = person("staff", is_staff=True), person("peer", is_staff=True)
    for user in (staff, peer):
        named = Permission.objects.filter(codename__in=[name.rpartition(".")[2] for name in names])
        user.user_permissions.set(Permission.objects.all() if names == ["*"] else named)
    client.force_login(User.objects.get(pk=staff.pk))
    before, password = rights(), anna.password
    for address in forms(client):
        for user in User.objects.all():
            if f"/user/{user.pk}/" in address or "/user/" not in address:
                send(client, address, grab(user, [boss.pk], [each.pk for each in most]))
                break
        else:
            send(client, address, grab(None, [boss.pk], [each.pk for each in most]))
    for address, marked in actions(chief):
        assert send(client, address, marked) in (200, 302, 400, 403)
    after = rights()
    if {"change_quota", "*"} & set(names):  # how much people may use is what this right is for
        after["anna"], after["staff"] = ((*user[:5], [], *user[6:]) for user in (after["anna"], after["staff"]))
    assert after == before
    made = User.objects.exclude(username__in=before)
    assert not made.filter(is_superuser=True).exists()
    assert not made.filter(is_staff=True).exists()
    assert not made.filter(groups=boss).exists()
    if {"decide_approval", "conversations.decide_approval", "*"} & set(names):
        assert not made.exists()  # they could ask as one person, and approve as the other
        assert User.objects.get(pk=anna.pk).password == password


@pytest.mark.parametrize("which", ["newcomers approve", "newcomers do not"])
def test_whoever_adds_people_adds_no_approver(client: Client, chief: User, which: str) -> None:
    """A new person is a member: where members approve for others, only superusers and nobody else add one."""
    if which == "newcomers approve":
        Group.objects.get(name=MEMBERS).permissions.add(Permission.objects.get(codename="decide_approval"))
    staff = person("staff", *PEOPLE, is_staff=True)
    staff.groups.clear()
    staff.user_permissions.add(Permission.objects.get(codename="decide_own_approval"))
    sent = grab(None, [], []) | {"quota-TOTAL_FORMS": 0}
    client.force_login(User.objects.get(pk=staff.pk))
    assert send(client, f"{USERS}add/", sent) == (403 if which == "newcomers approve" else 302)
    client.force_login(chief)
    assert send(client, f"{USERS}add/", sent | {"username": "newer"}) == 302


@pytest.mark.parametrize("who", ["staff", "approver"])
def test_equals_do_not_sign_in_as_each_other(client: Client, anna: User, who: str) -> None:
    """Neither as a colleague with the same rights, nor, if they approve for others, as anybody: they would be two."""
    more = ["decide_approval"] if who == "approver" else []
    staff = person("staff", *PEOPLE, *more, is_staff=True)
    other = anna if who == "approver" else person("peer", *PEOPLE, is_staff=True)
    client.force_login(staff)
    for page in ("change", "password"):
        assert send(client, f"{USERS}{other.pk}/{page}/", grab(other, [], [])) == 403
    assert client.get(f"{USERS}{other.pk}/change/").status_code == 200
    other.refresh_from_db()
    assert (other.email, other.check_password(PASSWORD)) == ("", True)
    own = {key: value for key, value in grab(staff, [], []).items() if not key.startswith("quota-")}
    assert send(client, f"{USERS}{staff.pk}/change/", own) == 302


@pytest.mark.parametrize("field", ["conversations", "api_keys", "logentry", "user_permissions", "groups", "password"])
@pytest.mark.parametrize("term", ["", "\x00", "9" * 30])
def test_completing_a_field_gives_nothing_away_and_is_no_error(
    client: Client, chief: User, field: str, term: str
) -> None:
    """Whatever field is named, of whatever table: 403 or 404, and never 500."""
    client.force_login(chief)
    for model, name in (("user", field), ("conversation", "prompts"), ("conversation", "owner")):
        app = "auth" if model == "user" else "conversations"
        asked = {"app_label": app, "model_name": model, "field_name": name, "term": term}
        assert client.get("/admin/autocomplete/", asked).status_code in (200, 403, 404)
    client.force_login(person("staff", is_staff=True))
    assert client.get("/admin/autocomplete/", asked).status_code == 403


def test_staff_who_may_change_people_change_those_who_may_no_more(client: Client, chief: User, anna: User) -> None:
    """The name of an ordinary person, and a new password for them: yes. Their rights are shown, but no fields."""
    client.force_login(person("staff", *PEOPLE, is_staff=True))
    page = client.get(f"{USERS}{anna.pk}/change/")
    assert page.status_code == 200
    for field in ("is_superuser", "is_staff", "is_active", "groups", "user_permissions"):
        assert f'name="{field}"' not in page.text
    kept = grab(anna, [], [])
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
        assert client.post(f"{USERS}{anna.pk}/{page}/", grab(anna, [], [])).status_code == 403
    assert client.get(f"{USERS}{anna.pk}/password/").status_code == 403
    anna.refresh_from_db()
    assert anna.check_password(PASSWORD)
    assert not anna.email


def test_a_superuser_still_changes_all_of_it(client: Client, chief: User, anna: User) -> None:
    """Flags, groups and permissions of others, and other superusers' rows."""
    client.force_login(chief)
    group = Group.objects.create(name="Approvers")
    may = Permission.objects.get(codename="view_step").pk
    sent = grab(anna, [group.pk], [may])
    assert client.post(f"{USERS}{anna.pk}/change/", sent).status_code == 302
    anna.refresh_from_db()
    assert (anna.is_staff, anna.is_superuser) == (True, True)
    assert list(anna.groups.all()) == [group]
    assert client.post(f"{USERS}{anna.pk}/password/", sent).status_code == 302
    renamed = {"name": "Deciders", "permissions": [may]}
    assert client.post(f"/admin/auth/group/{group.pk}/change/", renamed).status_code == 302
    assert Group.objects.filter(name="Deciders", permissions=may).exists()
