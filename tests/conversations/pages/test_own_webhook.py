"""The account page: a person's own webhook, for those who may have one."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from conversations.models import Delivery, NoticeKind, Webhook
from conversations.notifications.choices import ways_of
from conversations.notifications.webhooks.managing import secret_of
from tests.conversations.support import person

pytestmark = pytest.mark.django_db
URL = "https://1.1.1.1/hook"


@pytest.fixture
def may(client: Client, db: None) -> User:
    user = person("may", "have_webhook")
    client.force_login(user)
    return user


def post(client: Client, where: str = "", **body: Any) -> Any:
    return client.post(f"/account/webhook/{where}", body)


def test_who_may_have_none_is_shown_none_and_can_make_none(client: Client, ann: User) -> None:
    client.force_login(ann)
    page = client.get("/account/").text
    assert "webhook/" not in page
    assert "By webhook" not in page
    assert post(client, **{"webhook-url": URL}).status_code == 404
    assert not Webhook.objects.exists()
    client.post("/account/notifications/", {"notices-quiet_from": "", "notices-quiet_to": ""})
    assert ways_of(ann.pk)[NoticeKind.WAITS].hook  # what was not on the form stays


def test_the_secret_is_shown_once_and_can_be_made_anew(client: Client, may: User) -> None:
    made = post(client, **{"webhook-url": f" {URL} "})
    assert (made.status_code, made["Cache-Control"]) == (201, "no-store")
    webhook = Webhook.objects.get(user=may)
    secret = secret_of(webhook)
    assert f'value="{secret}"' in made.text
    assert secret not in client.get("/account/").text
    anew = post(client, "secret/")
    assert (anew.status_code, anew["Cache-Control"]) == (200, "no-store")
    webhook.refresh_from_db()
    assert f'value="{secret_of(webhook)}"' in anew.text
    assert secret not in anew.text


def test_an_address_to_which_nothing_may_be_sent_is_refused_at_its_field(client: Client, may: User) -> None:
    for url, why in (("https://10.0.0.1/", "does not lead to a public address"), ("http://1.1.1.1/", "Only https")):
        refused = post(client, **{"webhook-url": url})
        assert refused.status_code == 400
        assert re.search(rf'id="id_webhook-url_error"[^>]*>.*{why}', refused.text, re.DOTALL)
    assert not Webhook.objects.exists()


def test_it_is_tried_moved_switched_and_deleted(client: Client, may: User) -> None:
    post(client, **{"webhook-url": URL})
    assert post(client, "test/")["Location"] == "/account/#webhook"
    assert Delivery.objects.get().event == "webhook.test"
    assert "on its way" in client.get("/account/").text
    Delivery.objects.update(state="failed", error="The answer was 500.", answer="what a server in there says")
    page = client.get("/account/").text
    assert "failed. The answer was 500." in " ".join(page.split())
    assert "in there" not in page
    assert post(client, **{"webhook-url": f"{URL}/2"}).status_code == 302
    assert Webhook.objects.get().url == f"{URL}/2"
    post(client, "off/")
    assert "It is off." in client.get("/account/").text
    post(client, "test/")
    assert Delivery.objects.count() == 1
    post(client, "on/")
    assert Webhook.objects.get().on
    post(client, "delete/")
    assert not Webhook.objects.exists()
    assert post(client, "delete/").status_code == 404


def test_what_it_is_told_of_is_chosen_in_the_table(client: Client, may: User) -> None:
    body = {"notices-quiet_from": "", "notices-quiet_to": "", "notices-failed-hook": "on"}
    assert "By webhook" in client.get("/account/").text
    client.post("/account/notifications/", body)
    assert [kind for kind, ways in ways_of(may.pk).items() if ways.hook] == [NoticeKind.FAILED]
