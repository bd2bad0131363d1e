"""The lists of the admin: newest first, each of them; of approvals, those that wait come before."""

from __future__ import annotations

import re

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.test import Client, RequestFactory

from agents.models import Suggestion
from conversations.models import Approval, KillSwitch
from tests.conversations.support import Story, person

pytestmark = pytest.mark.django_db
BY_HAND = (Approval, KillSwitch, Suggestion)
"""Approvals and suggestions have an order of their own. The kill switch has one page, which is no list of Django's."""
LISTS = [model for model in admin.site._registry if model not in BY_HAND]


@pytest.fixture
def chief() -> User:
    return person("ada", is_staff=True, is_superuser=True)


def test_every_list_is_looked_at() -> None:
    """Those of packages would be lists that nobody ordered."""
    assert {model._meta.app_label for model in LISTS} == {"conversations", "auth", "agents", "workflows"}
    assert len(LISTS) >= 14


@pytest.mark.parametrize("model", LISTS, ids=lambda model: model._meta.label_lower)
def test_every_list_begins_with_the_newest(chief: User, model: type[Model]) -> None:
    """By its key, which counts up."""
    request = RequestFactory().get("/")
    request.user = chief
    assert admin.site.get_model_admin(model).get_changelist_instance(request).queryset.query.order_by[0] == "-pk"
    assert model._meta.pk.get_internal_type() in ("BigAutoField", "AutoField")


def test_so_it_is_on_the_page(client: Client, chief: User) -> None:
    client.force_login(chief)
    made = [Story(person(name)).prompt for name in ("zoe", "anna", "mara")]
    rows = re.findall(r"/admin/conversations/prompt/(\d+)/change/", client.get("/admin/conversations/prompt/").text)
    assert list(dict.fromkeys(map(int, rows))) == [prompt.pk for prompt in reversed(made)]
    people = re.findall(r"/admin/auth/user/(\d+)/change/", client.get("/admin/auth/user/").text)
    assert list(dict.fromkeys(map(int, people))) == list(User.objects.order_by("-pk").values_list("pk", flat=True))
    Group.objects.create(name="zebras")
    Group.objects.create(name="ants")
    groups = client.get("/admin/auth/group/").text
    assert groups.index("ants") < groups.index("zebras")
