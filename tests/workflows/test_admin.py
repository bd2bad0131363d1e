"""The admin: who may run each workflow, and runs by workflow, state and person."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from tests.conversations.recorded import Site
from tests.conversations.support import person
from tests.workflows import shop
from workflows.models import WorkflowSetting
from workflows.running import start_run

pytestmark = pytest.mark.django_db
ADD = reverse("admin:workflows_workflowsetting_add")
LIST = reverse("admin:workflows_workflowsetting_changelist")
PROMPTS = reverse("admin:conversations_prompt_changelist")


@pytest.fixture(autouse=True)
def _installed(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with shop.installed(site, monkeypatch):
        yield


@pytest.fixture
def root() -> User:
    return person("root", is_superuser=True, is_staff=True)


@pytest.fixture
def client(root: User) -> Client:
    client = Client()
    client.force_login(root)
    return client


def errors(response: Any) -> dict[str, list[str]]:
    return dict(response.context["adminform"].form.errors)


def test_a_setting_is_of_an_installed_workflow_and_says_who_may(client: Client) -> None:
    assert '<option value="shop.order">Order something (shop.order)</option>' in client.get(ADD).content.decode()
    group = Group.objects.create(name="Buyers")
    typed = {"name": "shop.order", "enabled": "on", "permission": "auth.add_user", "groups": [group.pk]}
    assert client.post(ADD, typed).status_code == 302
    setting = WorkflowSetting.objects.get()
    assert (setting.permission, list(setting.groups.all()), setting.list_to_others) == ("auth.add_user", [group], False)
    page = client.get(LIST).content.decode()
    assert "Order something (shop.order)" in page
    assert "Buyers" in page
    assert '<option value="shop.order"' not in client.get(ADD).content.decode()  # it has one


def test_a_permission_that_nobody_can_have_is_refused(client: Client) -> None:
    for wrong in ("no.such", "add_user", "auth.fly"):
        refused = client.post(ADD, {"name": "shop.order", "permission": wrong})
        assert "There is no permission" in errors(refused)["permission"][0]
    assert not WorkflowSetting.objects.exists()


def test_a_setting_of_a_workflow_that_is_gone_can_still_be_changed(client: Client) -> None:
    setting = WorkflowSetting.objects.create(name="shop.gone")
    address = reverse("admin:workflows_workflowsetting_change", args=[setting.pk])
    assert "shop.gone (not installed)" in client.get(address).content.decode()
    client.post(address, {"name": "shop.gone", "permission": ""})
    setting.refresh_from_db()
    assert not setting.enabled


def test_runs_are_found_by_workflow_state_and_person(client: Client, root: User, site: Site) -> None:
    ann = person("ann")
    start_run(shop.fail, ann, {})
    site.works()
    start_run(shop.order, ann, {"item": "annspaper"})
    start_run(shop.order, root, {"item": "rootspens"})
    orders = client.get(PROMPTS, {"policy": "workflow:shop.order"}).content.decode()
    assert ("annspaper" in orders, "rootspens" in orders, "/shop.fail" in orders) == (True, True, False)
    hers = {"policy": "workflow:shop.order", "asked_by__id__exact": str(ann.pk), "state__exact": "queued"}
    orders = client.get(PROMPTS, hers).content.decode()
    assert ("annspaper" in orders, "rootspens" in orders) == (True, False)
    assert "Order something" in orders  # among the filters
    assert client.get(PROMPTS, {"policy": "workflow:no.such"}).status_code == 200


def test_the_sidebar_leads_to_the_settings_for_those_who_may(client: Client) -> None:
    assert LIST in client.get(reverse("admin:index")).content.decode()
    staff = Client()
    staff.force_login(person("sam", is_staff=True))
    assert LIST not in staff.get(reverse("admin:index")).content.decode()
