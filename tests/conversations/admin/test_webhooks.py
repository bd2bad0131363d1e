"""Webhooks in the admin: those of the site are made there, and what was sent can be sent again."""

from __future__ import annotations

import re
import socket
from typing import Any
from unittest.mock import Mock

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils.html import escape

from conversations.models import Delivery, Webhook
from conversations.notifications.webhooks import managing
from conversations.notifications.webhooks.managing import secret_of
from tests.conversations.support import person

pytestmark = pytest.mark.django_db
URL = "https://1.1.1.1/hook"
HOOKS, LOG = "/admin/conversations/webhook/", "/admin/conversations/delivery/"


@pytest.fixture
def chief(client: Client, db: None) -> User:
    user = User.objects.create_superuser("chief")
    client.force_login(user)
    return user


def act(client: Client, where: str, action: str, *rows: Any) -> Any:
    return client.post(where, {"action": action, "_selected_action": [row.pk for row in rows]}, follow=True)


def test_one_of_the_site_is_made_and_its_secret_shown_once(client: Client, chief: User) -> None:
    refused = client.post(f"{HOOKS}add/", {"url": "https://10.0.0.1/", "events": ["turn.ended"]})
    assert "does not lead to a public address" in refused.text
    made = client.post(f"{HOOKS}add/", {"url": URL, "events": ["turn.ended"]})
    webhook = Webhook.objects.get()
    assert (webhook.user, webhook.events, webhook.on) == (None, ["turn.ended"], True)
    assert "no-store" in made["Cache-Control"]
    assert escape(secret_of(webhook)) in made.text
    page = f"{HOOKS}{webhook.pk}/change/"
    assert secret_of(webhook) not in client.get(page).text
    client.post(page, {"url": f"{URL}/2", "events": ["turn.ended", "trigger.failed"]})
    webhook.refresh_from_db()
    assert (webhook.url, webhook.events, webhook.on) == (f"{URL}/2", ["turn.ended", "trigger.failed"], False)
    before = secret_of(webhook)
    anew = act(client, HOOKS, "make_secret", webhook)
    webhook.refresh_from_db()
    assert secret_of(webhook) != before
    assert escape(secret_of(webhook)) in anew.text


def test_one_whose_host_is_gone_is_still_switched_and_deleted(
    client: Client, chief: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    webhook, _ = managing.make(URL, events=["turn.ended"])
    managing.send_test(webhook)
    monkeypatch.setattr(socket, "getaddrinfo", Mock(side_effect=OSError))
    client.post(f"{HOOKS}{webhook.pk}/change/", {"url": URL, "events": ["trigger.failed"]})
    webhook.refresh_from_db()
    assert (webhook.events, webhook.on) == (["trigger.failed"], False)
    asked = client.get(f"{HOOKS}{webhook.pk}/delete/")
    assert "Webhooks: 1 Deliveries: 1" in " ".join(re.sub("<[^>]*>", "", asked.text).split())
    client.post(f"{HOOKS}{webhook.pk}/delete/", {"post": "yes"})
    assert not Webhook.objects.exists()


def test_that_of_a_person_can_only_be_switched(client: Client, chief: User) -> None:
    webhook, secret = managing.make(URL, user=person("ann", "have_webhook"))
    client.post(f"{HOOKS}{webhook.pk}/change/", {"url": "https://1.1.1.1/other"})
    webhook.refresh_from_db()
    assert (webhook.url, webhook.on) == (URL, False)
    assert "People make the secrets of theirs." in act(client, HOOKS, "make_secret", webhook).text
    assert secret_of(webhook) == secret


def test_what_failed_is_in_the_log_and_is_sent_again(client: Client, chief: User) -> None:
    webhook, _ = managing.make(URL, events=["turn.ended"])
    off, _ = managing.make(URL)
    act(client, HOOKS, "send_test", webhook, off)
    failed = Delivery.objects.filter(webhook=webhook)
    failed.update(state="failed", next_at=None, tries=8, error="The answer was 500.", answer="<b>Sorry</b>")
    managing.switch_off(off)
    assert "The answer was 500." in client.get(f"{LOG}?state__exact=failed&webhook__id__exact={webhook.pk}").text
    assert "&lt;b&gt;Sorry&lt;/b&gt;" in client.get(f"{LOG}{failed[0].pk}/change/").text
    done = act(client, LOG, "send_again", *Delivery.objects.all()).text
    assert "1 delivery will be sent again, under the same id." in done
    assert "1 stays as before" in done
    again = failed.get()
    assert (again.state, again.tries, again.next_at is not None) == ("waiting", 0, True)


def test_each_thing_needs_its_permission(client: Client, db: None) -> None:
    client.force_login(person("stan", "view_delivery", "view_webhook", is_staff=True))
    webhook, _ = managing.make(URL)
    managing.send_test(webhook)
    Delivery.objects.update(state="failed", next_at=None)
    assert client.get(LOG).status_code == 200
    act(client, LOG, "send_again", *Delivery.objects.all())
    act(client, HOOKS, "send_test", webhook)
    assert Delivery.objects.get().state == "failed"
    assert client.post(f"{HOOKS}add/", {"url": URL, "events": ["turn.ended"]}).status_code == 403
