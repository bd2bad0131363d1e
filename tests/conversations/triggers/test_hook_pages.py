"""The pages of triggers that webhooks fire: a secret shown once, the history, and the mapping of a workflow."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from conversations.models import Firing, HookSecret, Prompt, Trigger
from conversations.triggers import managing
from conversations.triggers.hooks import secrets
from tests.conversations.triggers.hooking import PULL, deliver, hooked
from tests.workflows import shop

pytestmark = pytest.mark.django_db

HOOK = {"text": "read it", "when": "hook", "proof": "token", "starts": "", "zone": "UTC"}
ORDER: Any = {"policy": "workflow:shop.order", "text": ""}


@pytest.fixture
def client(ann: User) -> Client:
    cache.clear()
    signed_in = Client()
    signed_in.force_login(ann)
    return signed_in


@pytest.fixture
def _shop(monkeypatch: pytest.MonkeyPatch) -> Any:
    with shop.registered(monkeypatch, shop.order):
        yield


def test_its_secret_is_shown_once_with_a_command_that_works(client: Client) -> None:
    page = client.post(reverse("triggers"), HOOK)
    trigger = Trigger.objects.get()
    (secret,) = secrets.read(trigger)
    shown = page.text.replace("&#x27;", "'")
    assert (page.status_code, trigger.proof, secret in shown) == (200, "token", True)
    assert page.headers["Cache-Control"] == "no-store"
    assert f"curl 'http://testserver{trigger.hook_path}' \\\n  -H 'Authorization: Bearer {secret}'" in shown
    later = client.get(trigger.get_absolute_url()).text
    assert (secret in later, "Bearer TOKEN" in later, f"http://testserver{trigger.hook_path}" in later) == (
        False,
        True,
        True,
    )
    assert "By a webhook" in client.get(reverse("triggers")).text


def test_secrets_are_replaced_one_after_the_other(client: Client, ann: User) -> None:
    trigger, old = hooked(ann)
    page = client.post(reverse("add-hook-secret", args=[trigger.pk]))
    new = secrets.read(trigger)[1]
    assert (new in page.text, old in page.text, page.headers["Cache-Control"]) == (True, False, "no-store")
    first, second = HookSecret.objects.order_by("pk")
    client.post(reverse("remove-hook-secret", args=[trigger.pk, first.pk]))
    assert secrets.read(trigger) == [new]
    kept = client.post(reverse("remove-hook-secret", args=[trigger.pk, second.pk]), follow=True)
    assert ("so it must stay" in kept.text, secrets.read(trigger)) == (True, [new])


@pytest.mark.usefixtures("_shop")
def test_a_workflow_is_mapped_with_the_payload_that_came_first(client: Client) -> None:
    """What came before the mapping failed, and starts from the history once there is one."""
    client.post(reverse("triggers"), {**HOOK, "text": "", "proof": "standard", "starts": "workflow:shop.order"})
    trigger = Trigger.objects.get()
    assert "Nobody has chosen yet what the workflow is given." in client.get(trigger.get_absolute_url()).text
    assert deliver(trigger, secrets.read(trigger)[0]).json()["state"] == "failed"
    address = reverse("map-trigger", args=[trigger.pk])
    assert "Mend the pump" in client.get(address).text
    typed = {"source-item": "path", "typed-item": "pull_request.name", "source-pieces": "", "typed-pieces": ""}
    wrong = client.post(address, typed)
    assert wrong.status_code == 400
    assert "The payload has no `pull_request.name`." in wrong.text.replace("&#x27;", "'")
    typed |= {"typed-item": "pull_request.title", "source-pieces": "value", "typed-pieces": "200"}
    said = ["Enter a number that is 100 or less."]
    many = client.post(address, typed)
    assert (many.status_code, re.findall(r'role="alert">.*?<span>(.*?)</span>', many.text)) == (400, said)
    typed |= {"typed-pieces": "3"}
    preview = client.post(address, {**typed, "preview": "1"}).text
    assert ("Mend the pump&quot;</code>" in preview, Trigger.objects.get().mapping) == (True, {})
    saved = client.post(address, typed, follow=True)
    assert "The mapping is saved." in saved.text
    assert Trigger.objects.get().mapping == {"item": {"path": "pull_request.title"}, "pieces": {"value": 3}}
    assert "Start again" in saved.text
    firing = Firing.objects.get()
    again = client.post(reverse("start-firing-again", args=[trigger.pk, firing.pk]), follow=True)
    assert ("Started." in again.text, "Start again" in again.text, Prompt.objects.count()) == (True, False, 1)


@pytest.mark.usefixtures("_shop")
def test_a_sample_that_is_pasted_goes_first(client: Client, ann: User) -> None:
    trigger, _ = hooked(ann, **ORDER)
    address = reverse("map-trigger", args=[trigger.pk])
    typed = {"source-item": "path", "typed-item": "a.0", "preview": "1"}
    assert "The sample gives" in client.post(address, {**typed, "sample": '{"a": ["paper"]}'}).text
    assert "The payload is not JSON" in client.post(address, {**typed, "sample": "a=b"}).text
    neither = client.post(address, {"source-item": "", "typed-item": "a.0"})
    assert (neither.status_code, "Choose whether this is a place" in neither.text) == (400, True)
    saved = client.post(address, {"source-item": "path", "typed-item": "a.0"}, follow=True)
    assert "The mapping is saved." in saved.text, "without a sample there is nothing to try it on"


def test_what_refuses_is_in_the_history(client: Client, ann: User) -> None:
    trigger, secret = hooked(ann)
    client.post(reverse("pause-trigger", args=[trigger.pk]))
    for number in range(3):
        deliver(trigger, secret, str(number), PULL)
    page = " ".join(client.get(trigger.get_absolute_url()).text.split())
    assert "and 2 more" in page
    assert "A webhook came while the trigger was paused." in page


@pytest.mark.usefixtures("_shop")
@pytest.mark.parametrize("typed", ["1e400", "NaN", "[" * 100_000, '"\\ud800"'])
@pytest.mark.parametrize("more", [{}, {"preview": "1", "sample": "{}"}])
def test_a_value_that_no_database_takes_is_refused_at_its_field(
    client: Client, ann: User, typed: str, more: dict[str, str]
) -> None:
    trigger, _ = hooked(ann, **ORDER)
    fields = {"source-item": "value", "typed-item": "pump", "source-pieces": "value", "typed-pieces": typed}
    page = client.post(reverse("map-trigger", args=[trigger.pk]), {**fields, **more})
    trigger.refresh_from_db()
    saved = trigger.mapping == {"item": {"value": "pump"}, "pieces": {"value": typed}}  # a text, for want of JSON
    if page.status_code == 302:
        assert saved
    else:
        assert (page.status_code, trigger.mapping) == (200 if more else 400, {})


@pytest.mark.usefixtures("_shop")
def test_a_mapping_is_stored_with_valid_texts(client: Client, ann: User) -> None:
    trigger, _ = hooked(ann, **ORDER)
    mapping = {"item": {"value": "a\x00b"}, "pieces": {"path": "c\x00d"}}
    path = reverse("api-trigger", args=[trigger.pk])
    response = client.patch(path, {"mapping": {**mapping, "pieces": {"path": "n"}}}, content_type="application/json")
    assert response.json()["mapping"]["item"] == {"value": "a\ufffdb"}
    managing.change(trigger, replace(managing.NewTrigger.of(trigger), mapping=mapping))
    trigger.refresh_from_db()
    assert trigger.mapping == {"item": {"value": "a\ufffdb"}, "pieces": {"path": "c\ufffdd"}}
    response = client.patch(path, '{"mapping": {"item": {"value": 1e400}}}', content_type="application/json")
    assert (response.status_code, [*response.json()["error"]["fields"]]) == (400, ["mapping.item"])
