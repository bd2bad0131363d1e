"""Triggers that webhooks fire, over the API: made with a secret that is shown once, changed, and started again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache

from conversations.models import Firing, Trigger
from tests.api.client import JSON, Api, error_of
from tests.conversations.triggers.hooking import PULL, deliver
from tests.workflows import shop

pytestmark = pytest.mark.django_db

URL = "/api/triggers/"
READ = {"text": "read payload.json", "webhook": "standard"}
ORDER = {"workflow": "shop.order", "webhook": "standard", "mapping": {"item": {"path": "pull_request.title"}}}


@pytest.fixture(autouse=True)
def _shop(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    cache.clear()
    with shop.registered(monkeypatch, shop.order):
        yield


def made(api: Api, body: Any, **headers: str) -> dict[str, Any]:
    response = api.post(URL, body, **headers)
    assert response.status_code == 201, response.content
    found: dict[str, Any] = response.json()
    return found


def test_its_secret_is_in_the_answer_that_made_it_and_no_other(api: Api, ann: User) -> None:
    told = made(api, READ, Idempotency_Key="once")
    (secret,) = told["secrets"]
    assert secret["text"].startswith("whsec_")
    assert (told["webhook"], told["when"], told["state"], told["overlap"]) == (
        "standard",
        "by a webhook",
        "on",
        "queue",
    )
    assert (told["next_at"], told["next"], told["mapping"]) == (None, [], None)
    row = Trigger.objects.get()
    assert told["url"].endswith(f"/hooks/{row.hook}/")
    assert len(row.hook) == 32
    assert made(api, READ, Idempotency_Key="once")["secrets"][0]["text"] is None
    assert api.get(f"{URL}{row.pk}/").json()["secrets"] == [{**secret, "text": None}]
    assert deliver(row, secret["text"]).status_code == 202
    (firing,) = api.get(f"{URL}{row.pk}/firings/").json()["results"]
    assert (firing["state"], firing["webhook_id"], firing["can_start_again"]) == ("started", "msg_1", False)


def test_secrets_are_added_and_removed(api: Api, ann: User) -> None:
    told = made(api, READ)
    secrets = f"{URL}{told['id']}/secrets/"
    new = api.post(secrets)
    assert (new.status_code, new.json()["text"][:6]) == (201, "whsec_")
    assert api.delete(f"{secrets}{told['secrets'][0]['id']}/").status_code == 204
    row = Trigger.objects.get()
    assert deliver(row, told["secrets"][0]["text"]).status_code == 401
    assert deliver(row, new.json()["text"]).status_code == 202
    assert error_of(api.delete(f"{secrets}{new.json()['id']}/"), 409)["code"] == "last_secret"
    assert [api.post(secrets).status_code for _ in range(5)] == [201] * 4 + [409]
    timed = made(api, {"text": "look", "cron": "@daily"})
    assert error_of(api.post(f"{URL}{timed['id']}/secrets/"), 409)["code"] == "no_webhook"
    assert (timed["webhook"], timed["url"], timed["secrets"]) == (None, None, [])


def test_nobody_else_has_its_secrets(api: Api, other: Api) -> None:
    told = made(api, READ)
    assert other.post(f"{URL}{told['id']}/secrets/").status_code == 404
    assert other.delete(f"{URL}{told['id']}/secrets/{told['secrets'][0]['id']}/").status_code == 404
    mine = made(other, READ)
    assert other.delete(f"{URL}{mine['id']}/secrets/{told['secrets'][0]['id']}/").status_code == 404


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        (READ | {"cron": "@daily"}, "invalid", ""),
        (READ | {"webhook": "magic"}, "invalid", "webhook"),
        (READ | {"mapping": {"a": {"path": "b"}}}, "invalid_input", "mapping"),
        (ORDER | {"input": {"item": "paper"}}, "invalid", ""),
        (ORDER | {"mapping": {"item": {"path": "a", "value": 1}}}, "invalid", "mapping.item"),
        (ORDER | {"mapping": {"item": {"path": "a..b"}}}, "invalid_input", "mapping.item"),
        ({"text": "look", "cron": "@daily", "mapping": {}}, "invalid", ""),
    ],
)
def test_what_cannot_be_is_said_at_its_field(api: Api, body: Any, code: str, field: str) -> None:
    refused = error_of(api.post(URL, body), 400)
    assert (refused["code"], list(refused["fields"])) == (code, [field])
    assert not Trigger.objects.exists()


def test_a_mapping_is_mended_and_what_failed_starts_again(api: Api, ann: User) -> None:
    told = made(api, ORDER)
    row = Trigger.objects.get()
    assert deliver(row, told["secrets"][0]["text"], body={"title": "Pump"}).json()["state"] == "failed"
    failed = Firing.objects.get()
    (firing,) = api.get(f"{URL}{row.pk}/firings/").json()["results"]
    assert firing["can_start_again"]
    assert "item: The payload has no `pull_request.title`: `pull_request` is missing." in firing["reason"]
    mapping = {"item": {"path": "title"}}
    address = f"{URL}{row.pk}/"
    changed = api.client.patch(address, {"mapping": mapping}, content_type=JSON, headers=api._with_key({})).json()
    assert (changed["mapping"], changed["webhook"], changed["policy"]) == (mapping, "standard", "workflow:shop.order")
    again = api.post(f"{address}firings/{failed.pk}/again/")
    assert (again.status_code, again.json()["state"], again.json()["id"]) == (201, "started", failed.pk)
    assert error_of(api.post(f"{address}firings/{failed.pk}/again/"), 409)["code"] == "not_failed"
    assert deliver(row, told["secrets"][0]["text"], "2", PULL | {"title": "Valve"}).json()["state"] == "queued"


@pytest.mark.parametrize("body", [{"cron": "@daily"}, {"input": {}}, {"text": "look", "mapping": {"a": {"value": 1}}}])
def test_it_keeps_firing_by_webhooks(api: Api, body: Any) -> None:
    told = made(api, ORDER)
    address = f"{URL}{told['id']}/"
    response = api.client.patch(address, body, content_type=JSON, headers=api._with_key({}))
    assert error_of(response, 400)["code"] in ("invalid", "invalid_input")
    assert api.get(address).json()["mapping"] == told["mapping"]
