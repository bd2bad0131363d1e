"""Sending to a real server: signed, retried for a day, to one receiver whatever another does, never twice at once."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F
from django.utils import timezone

from conversations.models import Delivery, Event, Notice, Proof, Webhook
from conversations.notifications.webhooks import managing, posting
from conversations.notifications.webhooks.sending import TRIES, WAITS_SECONDS, Sender, send_due
from conversations.triggers.hooks.proofs import proven_id
from conversations.worker.sweeping import sweep_old
from tests.agentsite.processes import free_port
from tests.conversations.notifications.webhooks.receiver import Answer, Receiver, receiving
from tests.conversations.support import person

pytestmark = pytest.mark.django_db


def prepared(receiver: Receiver, **more: Any) -> tuple[Webhook, str]:
    """Make a webhook with one delivery that is due; return it with its secret."""
    webhook, secret = managing.make(receiver.url, **more)
    managing.send_test(webhook)
    return webhook, secret


def only() -> Delivery:
    return Delivery.objects.get()


def passes(seconds: float) -> None:
    """Let time pass for what is to be sent."""
    Delivery.objects.update(next_at=F("next_at") - timedelta(seconds=seconds))


def test_what_arrives_is_signed_as_standard_webhooks_says(receiver: Receiver) -> None:
    _, secret = prepared(receiver)
    assert [send_due(), send_due()] == [1, 0]
    (got,) = receiver.got
    delivery = only()
    assert (got.path, got.headers["Content-Type"]) == ("/hook?a=b", "application/json")
    assert json.loads(got.body)["type"] == "webhook.test"
    id, sent = got.headers["webhook-id"], got.headers["webhook-timestamp"]
    key = base64.b64decode(secret.removeprefix("whsec_"))
    wanted = base64.b64encode(hmac.new(key, f"{id}.{sent}.".encode() + got.body, hashlib.sha256).digest()).decode()
    assert got.headers["webhook-signature"] == f"v1,{wanted}"
    assert proven_id(Proof.STANDARD, got.headers, got.body, [secret], timezone.now()) == id == delivery.message_id
    assert (delivery.state, delivery.status, delivery.tries, delivery.next_at) == ("delivered", 204, 1, None)


def test_what_fails_is_tried_eight_times_over_a_day_and_then_again_only_by_hand(receiver: Receiver) -> None:
    prepared(receiver)
    receiver.answer = lambda: (500, {}, b"sorry " * 200)
    waits = []
    for _ in range(TRIES):
        send_due()
        assert send_due() == 0
        delivery = only()
        if delivery.next_at:
            waits.append((delivery.next_at - timezone.now()).total_seconds())
            passes(waits[-1] + 1)
    assert waits == pytest.approx(WAITS_SECONDS, rel=0.11, abs=2)
    assert 0.9 < sum(WAITS_SECONDS) / 86400 < 1.1
    assert (delivery.state, delivery.tries, delivery.status) == ("failed", 8, 500)
    assert (delivery.error, len(delivery.answer)) == ("The answer was 500.", 500)
    receiver.answer = lambda: (200, {}, b"")
    assert managing.send_again(Delivery.objects.all()) == 1
    send_due()
    assert (only().state, only().tries, only().error) == ("delivered", 1, "")
    assert len(receiver.got) == 9
    assert {got.headers["webhook-id"] for got in receiver.got} == {only().message_id}


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [("1800", 1800), ("999999", 6 * 3600), ("soon", 5), ("Mon, 01 Jan 99999999999999999999 00:00:00 GMT", 5)],
)
def test_a_receiver_may_ask_for_time_within_bounds(receiver: Receiver, asked: str, seconds: float) -> None:
    prepared(receiver)
    receiver.answer = lambda: (503, {"Retry-After": asked}, b"")
    send_due()
    wait = only().next_at - timezone.now()  # type: ignore[operator]
    assert wait.total_seconds() == pytest.approx(seconds, abs=3)


def test_who_answers_gone_gets_nothing_more_and_its_people_are_told(receiver: Receiver) -> None:
    chief = User.objects.create_superuser("chief")
    webhook, _ = prepared(receiver)
    managing.send_test(webhook)
    receiver.answer = lambda: (410, {}, b"")
    send_due()
    webhook.refresh_from_db()
    assert (webhook.on, webhook.off_reason) == (False, "Its receiver answered 410: it wants no more webhooks.")
    assert len(receiver.got) == 1
    assert not Delivery.objects.exclude(state="failed").exists()
    assert Notice.objects.get().user == chief
    assert managing.send_again(Delivery.objects.all()) == 0
    with pytest.raises(managing.NotOn):
        managing.send_test(webhook)


def test_one_at_which_all_fails_for_days_is_switched_off_and_its_owner_is_told(receiver: Receiver) -> None:
    ann = person("ann", "have_webhook")
    webhook, _ = prepared(receiver, user=ann)
    receiver.answer = lambda: (500, {}, b"")
    send_due()
    Webhook.objects.update(failing_since=F("failing_since") - timedelta(days=6))
    passes(WAITS_SECONDS[0] * 1.2)
    send_due()
    assert Webhook.objects.get().on  # it may have had nothing else to send for a week
    Delivery.objects.update(tries=TRIES - 1)
    passes(WAITS_SECONDS[1] * 1.2)
    send_due()
    assert Webhook.objects.get().off_reason == "Nothing could be delivered for 5 days."
    notice = Notice.objects.get(user=ann)
    assert "127.0.0.1" in notice.title
    assert "/hook" not in notice.title
    managing.switch_on(webhook)
    receiver.answer = lambda: (200, {}, b"")
    managing.send_again(Delivery.objects.all())
    send_due()
    assert Webhook.objects.get().failing_since is None


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    with receiving() as elsewhere:
        prepared(receiver)
        receiver.answer = lambda: (307, {"Location": elsewhere.url}, b"")
        send_due()
        assert (only().status, only().state, elsewhere.got) == (307, "waiting", [])


def test_of_a_large_answer_only_the_beginning_is_read(receiver: Receiver) -> None:
    prepared(receiver)
    receiver.answer = lambda: (400, {}, b"x\0" * 5_000_000)
    before = time.monotonic()
    send_due()
    assert only().answer == "x\N{REPLACEMENT CHARACTER}" * 250
    assert time.monotonic() - before < posting.TOTAL_SECONDS


def test_an_answer_that_does_not_end_is_a_failed_try(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting, "TOTAL_SECONDS", 0.3)
    release = threading.Event()

    def hangs() -> tuple[int, dict[str, str], bytes]:
        release.wait(30)
        return 200, {}, b""

    prepared(receiver)
    receiver.answer = hangs
    send_due()
    release.set()
    assert (only().state, only().tries, only().status) == ("waiting", 1, None)
    assert "no whole answer" in only().error


def test_the_environment_sends_nothing_elsewhere(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        prepared(receiver)
        send_due()
        assert (len(receiver.got), proxy.got) == (1, [])


def test_a_try_that_was_cut_off_is_made_again_under_the_same_id(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared(receiver)

    def dies(*_args: Any) -> None:
        posting.post(*_args)
        raise SystemExit  # as if it was killed: nothing is recorded

    with monkeypatch.context() as killed:
        killed.setattr("conversations.notifications.webhooks.sending.post", dies)
        with pytest.raises(SystemExit):
            send_due()
    assert send_due() == 0  # the claim holds
    passes(120)
    assert send_due() == 1
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1
    assert len(receiver.got) == 2
    assert only().state == "delivered"


@pytest.mark.django_db(transaction=True)
def test_two_processes_make_one_try(receiver: Receiver) -> None:
    found: list[int] = []

    def meanwhile() -> tuple[int, dict[str, str], bytes]:
        found.append(send_due())
        connection.close()
        return 200, {}, b""

    prepared(receiver)
    receiver.answer = meanwhile
    assert send_due() == 1
    assert (found, len(receiver.got), only().tries) == ([0], 1, 1)


def test_what_a_receiver_refuses_keeps_nothing_else_from_it(receiver: Receiver) -> None:
    """While one that can take nothing for now is left alone."""
    webhook, _ = prepared(receiver)
    for number in range(2):
        webhook.deliveries.create(event=Event.ENDED, message_id=f"m{number}", body="{}", next_at=timezone.now())
    passes(1)
    answers: Iterator[Answer] = iter([(400, {}, b""), (204, {}, b""), (503, {}, b""), (204, {}, b"")])
    receiver.answer = lambda: next(answers)
    send_due()
    assert [delivery.status for delivery in Delivery.objects.order_by("pk")] == [400, 204, 503]
    assert len(receiver.got) == 3
    more = webhook.deliveries.create(event=Event.ENDED, message_id="more", body="{}", next_at=timezone.now())
    Delivery.objects.filter(pk=more.pk).update(next_at=F("next_at") - timedelta(hours=1))
    send_due()
    more.refresh_from_db()
    assert more.state == "delivered"


def test_whatever_goes_wrong_is_a_try(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared(receiver)
    monkeypatch.setattr(posting, "_headers", lambda *_: 1 / 0)
    send_due()
    assert (only().tries, only().error) == (1, "It could not be sent: ZeroDivisionError.")


def test_what_is_no_answer_tells_nobody_the_address(receiver: Receiver) -> None:
    prepared(receiver)
    receiver.answer = lambda: (200, {"Transfer-Encoding": "chunked", "Content-Length": "nonsense"}, b"")
    send_due()
    assert only().error.startswith("There was no answer: ")
    assert "a=b" not in only().error


def test_a_receiver_that_is_not_there_is_told_in_plain_words(receiver: Receiver) -> None:
    prepared(receiver)
    Webhook.objects.update(url=f"http://127.0.0.1:{free_port()}/hook")
    send_due()
    assert (only().status, only().error) == (None, "There was no answer: Connection refused")


@pytest.mark.django_db(transaction=True)
def test_gone_from_an_address_that_was_left_says_nothing_of_the_new_one(receiver: Receiver) -> None:
    webhook, _ = prepared(receiver)

    def moved() -> tuple[int, dict[str, str], bytes]:
        Webhook.objects.update(url="https://1.1.1.1/new")
        connection.close()
        return 410, {}, b""

    receiver.answer = moved
    send_due()
    webhook.refresh_from_db()
    assert (webhook.on, webhook.off_reason) == (True, "")


def test_a_test_that_waits_is_the_one_that_is_sent(receiver: Receiver) -> None:
    webhook, _ = prepared(receiver)
    managing.send_test(webhook)
    assert only().next_at


@pytest.mark.django_db(transaction=True)
def test_a_receiver_that_hangs_holds_up_no_other(receiver: Receiver) -> None:
    release, arrived = threading.Event(), threading.Event()

    def hangs() -> tuple[int, dict[str, str], bytes]:
        release.wait(30)
        return 200, {}, b""

    def arrives() -> tuple[int, dict[str, str], bytes]:
        arrived.set()
        return 200, {}, b""

    with receiving() as other:
        prepared(receiver)
        prepared(other)
        receiver.answer, other.answer = hangs, arrives
        sender = Sender()
        sender.look()
        assert arrived.wait(30)
        assert not Delivery.objects.filter(webhook__url=receiver.url, state="delivered").exists()
        threads = list(sender._threads.values())
        sender.look()  # the one that hangs has its thread already
        release.set()
        for thread in threads:
            thread.join()
        assert len(receiver.got) == 1
        assert list(Delivery.objects.values_list("state", flat=True)) == ["delivered"] * 2


def test_one_that_is_switched_off_or_whose_owner_may_have_none_gets_nothing(receiver: Receiver) -> None:
    webhook, _ = prepared(receiver)
    managing.switch_off(webhook)
    ann = person("ann", "have_webhook")
    prepared(receiver, user=ann)
    ann.user_permissions.clear()
    send_due()
    assert receiver.got == []
    assert set(Delivery.objects.values_list("state", "error")) == {
        ("failed", managing.SWITCHED_OFF),
        ("failed", managing.NOT_ALLOWED),
    }


def test_a_secret_opens_only_for_its_own_webhook(receiver: Receiver, settings: Any) -> None:
    webhook, secret = managing.make(receiver.url)
    assert secret not in webhook.ciphertext
    other, _ = prepared(receiver)
    Webhook.objects.filter(pk=other.pk).update(ciphertext=webhook.ciphertext)
    send_due()
    assert receiver.got == []
    assert "Make a new one" in only().error


def test_what_is_over_goes_after_ninety_days(receiver: Receiver) -> None:
    webhook, _ = prepared(receiver)
    send_due()
    managing.send_test(webhook)
    Delivery.objects.update(created_at=timezone.now() - timedelta(days=91))
    assert sweep_old() == 1
    assert only().state == "waiting"
    assert only().event == Event.TEST
