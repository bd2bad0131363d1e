"""Who sees a workflow and who may run it: its author declares it, an administrator decides, and one rule says why."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test.utils import CaptureQueriesContext

from tests.conversations.recorded import Site
from tests.conversations.support import person
from tests.workflows import shop
from workflows import Flow, workflow
from workflows.models import WorkflowSetting
from workflows.running import line_from, seen, seen_by

pytestmark = pytest.mark.django_db


@workflow("shop.close", title="Close", category=shop.SHOP, permission="auth.delete_user")
async def close(flow: Flow[Any]) -> None:
    """Closes the shop."""


@pytest.fixture(autouse=True)
def _installed(site: Site, monkeypatch: pytest.MonkeyPatch) -> Any:
    with shop.installed(site, monkeypatch, workflows=(shop.order, shop.fail, close)) as provider:
        yield provider


def names(user: User) -> dict[str, str | None]:
    """What this person sees, with why they may not run it."""
    return {each.workflow.name: each.why_not for each in seen_by(user)}


def setting(name: str, *groups: Group, **more: Any) -> WorkflowSetting:
    made = WorkflowSetting.objects.create(name=name, **more)
    made.groups.set(groups)
    return made


def test_a_person_sees_what_they_may_run(ann: User) -> None:
    assert names(ann) == {"shop.order": None, "shop.fail": None}
    assert names(person("kit", "delete_user")) == {"shop.order": None, "shop.fail": None, "shop.close": None}
    assert seen(ann, "shop.close") is None
    assert seen(ann, "shell.run") is None


def test_what_is_listed_to_others_is_seen_with_the_reason(ann: User) -> None:
    setting("shop.close", permission="auth.delete_user", list_to_others=True)
    setting("shop.fail", enabled=False, list_to_others=True)
    setting("shop.order", enabled=False)
    reasons = names(ann)
    assert set(reasons) == {"shop.fail", "shop.close"}
    assert reasons["shop.fail"] == "An administrator has turned this workflow off."
    assert str(reasons["shop.close"]).startswith("It needs the permission auth.delete_user, which you do not have.")


def test_an_administrators_permission_replaces_that_of_the_author(ann: User) -> None:
    """Where they name none, that of the author stays: a row that only lists it to others opens nothing."""
    setting("shop.close", list_to_others=True)
    setting("shop.order", permission="auth.delete_user")
    assert {each.workflow.name: each.why_not is None for each in seen_by(ann)} == {
        "shop.fail": True,
        "shop.close": False,
    }
    setting("shop.fail", permission="auth.delete_user")
    assert {each.workflow.name for each in seen_by(ann)} == {"shop.close"}


def test_groups_are_asked_for(ann: User, bob: User) -> None:
    clerks, others = Group.objects.create(name="Clerks"), Group.objects.create(name="Others")
    setting("shop.order", clerks, list_to_others=True)
    ann.groups.add(clerks)
    bob.groups.add(others)
    assert names(ann)["shop.order"] is None
    assert names(bob)["shop.order"] == "Only members of certain groups may run this workflow. Ask an administrator."
    assert names(person("root", is_superuser=True))["shop.order"] is None


def test_a_deactivated_person_sees_none(ann: User) -> None:
    ann.is_active = False
    assert names(ann) == {}


def test_the_settings_are_read_at_once(ann: User, django_assert_num_queries: Any) -> None:
    clerks = Group.objects.create(name="Clerks")
    for each in ("shop.order", "shop.fail", "shop.close"):
        setting(each, clerks)
    ann.has_perm("auth.delete_user")  # Django keeps the permissions of a person who made a request
    with django_assert_num_queries(1) as queries:
        assert isinstance(queries, CaptureQueriesContext)
        assert names(ann) == {}


def test_a_line_is_one_whether_or_not_its_sender_may_run_it() -> None:
    """Else a line with a password would be a message as soon as its workflow is turned off."""
    line = line_from("/shop.order paper pieces=2")
    assert line is not None
    assert (line.workflow, line.input) == (shop.order, {"item": "paper", "pieces": 2})
    closed = line_from("/shop.close")
    assert closed is not None
    assert closed.workflow is close
    assert line_from("/shop.none") is None
