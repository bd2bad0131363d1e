"""A workflow's form sets a trigger: run later, or again and again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from conversations.models import Origin, Prompt, Trigger
from tests.conversations.triggers.conftest import StillClock, clock
from tests.workflows import shop
from tests.workflows.batches import attended
from workflows.models import WorkflowSetting

__all__ = ["clock"]
pytestmark = pytest.mark.django_db

DAILY = {"due-when": "daily", "due-time": "09:00", "due-zone": "Europe/Berlin", "due-overlap": "skip"}


@pytest.fixture(autouse=True)
def _shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with shop.registered(monkeypatch, shop.order, attended):
        yield


@pytest.fixture
def client(ann: User) -> Client:
    signed_in = Client()
    signed_in.force_login(ann)
    return signed_in


def sent(client: Client, later: str, **typed: str) -> Any:
    fields = {"key": "k1", "line-0": "paper", "later": later, **typed}
    return client.post(reverse("workflow", args=["shop.order"]), fields)


def test_it_asks_when_and_sets_a_trigger(client: Client, ann: User, clock: StillClock) -> None:
    asked = sent(client, "ask").text
    assert ("When is" in asked, "paper" in asked, Trigger.objects.exists()) == (True, True, False)
    shown = sent(client, "preview", **DAILY).text
    assert ("Tue 3 Mar 2026, 09:00" in shown, Trigger.objects.exists(), Prompt.objects.exists()) == (True, False, False)
    page = client.get(sent(client, "set", **DAILY).url)
    trigger = Trigger.objects.get()
    assert ("It runs every day at 09:00 Europe/Berlin." in page.text, trigger.owner) == (True, ann)
    assert (trigger.policy, trigger.input) == ("workflow:shop.order", {"item": "paper"})
    clock.at(2026, 3, 3, 8)
    assert clock.passes() == 1
    run = Prompt.objects.get()
    assert (run.policy, run.origin, run.asked_by) == (trigger.policy, Origin.TRIGGER, ann)


def test_who_may_not_start_it_any_more_does_not_by_a_trigger(client: Client, ann: User, clock: StillClock) -> None:
    sent(client, "set", **DAILY)
    WorkflowSetting.objects.create(name="shop.order", permission="auth.add_user")
    clock.at(2026, 3, 3, 8)
    clock.passes()
    firing = Trigger.objects.get().firings.get()
    assert (firing.state, Prompt.objects.exists()) == ("failed", False), firing.reason


def test_what_is_wrong_is_said_where_it_was_typed(client: Client, clock: StillClock, settings: Any) -> None:
    no_item = sent(client, "ask", **{"line-0": ""})
    assert (no_item.status_code, "When is" in no_item.text) == (400, False)
    often = sent(client, "set", **{**DAILY, "due-when": "every", "due-minutes": "1"})
    assert (often.status_code, "That is more often than every 5 minutes" in often.text) == (400, True)
    assert 'name="line-0" value="paper"' in often.text, "what was typed stays"
    assert often.text.count('name="due-when"') == 1
    settings.AGENTSITE_TRIGGERS_A_PERSON = 0
    many = sent(client, "set", **DAILY)
    assert (many.status_code, "which is the limit" in many.text, Trigger.objects.exists()) == (409, True, False)


def test_what_needs_somebody_there_does_not_run_later(client: Client) -> None:
    address = reverse("workflow", args=[attended.name])
    assert ("Run later" in client.get(reverse("workflow", args=["shop.order"])).text) is True
    assert ("Run later" in client.get(address).text) is False
    refused = client.post(address, {"line-0": "paper", "later": "set", **DAILY})
    assert (refused.status_code, "runs only while somebody is there" in refused.text) == (400, True)
    assert (Trigger.objects.exists(), Prompt.objects.exists()) == (False, False)


def test_its_input_can_be_changed(client: Client) -> None:
    assert 'value="paper"' in sent(client, "ask", change="1").text
