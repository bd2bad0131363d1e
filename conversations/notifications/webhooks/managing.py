"""Managing webhooks: making, changing, switching off, trying and sending again."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from cryptography.fernet import InvalidToken
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.crypto import get_random_string

from agents.engine.ledger import canonical
from conversations.accounts.names import administrators
from conversations.database.sql import database_time
from conversations.ledger.sealing import lock
from conversations.models import Delivery, DeliveryState, Event, NoticeKind, Webhook
from conversations.notifications.notify import notify
from conversations.notifications.webhooks.addresses import parsed
from conversations.notifications.webhooks.signing import new_secret

logger = logging.getLogger(__name__)

LABEL = b"secrets of outgoing webhooks"
PERMISSION = "conversations.have_webhook"
SWITCHED_OFF = "The webhook was switched off."
NOT_ALLOWED = "Its owner may not have a webhook any more."


class NotOn(Exception):
    """This webhook is switched off. Switch it on first."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def make(url: str, *, user: User | None = None, events: Sequence[str] = ()) -> tuple[Webhook, str]:
    """Make a webhook of this person, or of the site; return it and its secret, which nobody is shown again.

    Raises BadAddress, User.DoesNotExist if they were deactivated meanwhile, and IntegrityError if they have one.
    """
    with transaction.atomic():
        if user:
            User.objects.select_for_update(no_key=True).get(pk=user.pk, is_active=True)
        webhook = Webhook.objects.create(user=user, url=str(parsed(url)), events=list(events))
        return webhook, renew_secret(webhook)


def renew_secret(webhook: Webhook) -> str:
    """Give a webhook a new secret and return it: from now on, all is signed with it."""
    secret = new_secret()
    webhook.ciphertext = lock(LABEL).encrypt(canonical([webhook.pk, secret]).encode()).decode()
    webhook.save(update_fields=["ciphertext"])
    return secret


def secret_of(webhook: Webhook) -> str:
    """Return the secret of a webhook; "" if this site's keys do not open it.

    The webhook is encrypted with it: moved to the row of another one, it opens nothing.
    """
    try:
        owner, secret = json.loads(lock(LABEL).decrypt(webhook.ciphertext))
    except (InvalidToken, ValueError):
        logger.warning("a webhook's secret cannot be read: SECRET_KEY changed", extra={"webhook": webhook.pk})
        return ""
    return str(secret) if owner == webhook.pk else ""


def move(webhook: Webhook, url: str) -> None:
    """Send a webhook to another address from now on, what waits as well. Raises BadAddress."""
    webhook.url, webhook.failing_since = str(parsed(url)), None
    webhook.save(update_fields=["url", "failing_since"])


def switch_on(webhook: Webhook) -> None:
    """Let a webhook be told of what happens from now on."""
    Webhook.objects.filter(pk=webhook.pk).update(on=True, off_reason="", failing_since=None)


def switch_off(webhook: Webhook, reason: str = "") -> None:
    """Switch a webhook off: what waits is not sent. `reason`: why the site did it; its people are told then."""
    with transaction.atomic():
        if not Webhook.objects.filter(pk=webhook.pk, on=True).update(on=False, off_reason=reason[:300]):
            return
        drop_waiting(webhook.deliveries.all(), SWITCHED_OFF)
        if reason:
            title = f"The webhook to {webhook.host}: {reason}"
            in_admin = reverse("admin:conversations_webhook_change", args=[webhook.pk])
            for person in [webhook.user] if webhook.user else administrators():
                link = reverse("account") if webhook.user else in_admin
                notify(person, NoticeKind.TRIGGER, title=title, link=link)


def now() -> datetime:
    """Return the time by the database's clock, at which deliveries are due."""
    return datetime.fromtimestamp(database_time(), UTC)


def drop_waiting(deliveries: QuerySet[Delivery], why: str) -> None:
    """Let those of these deliveries that wait be over, as failed."""
    deliveries.filter(state=DeliveryState.WAITING).update(state=DeliveryState.FAILED, next_at=None, error=why)


def send_test(webhook: Webhook) -> None:
    """Send a webhook a test, in the next round of a worker: the one that waits, if one does. Raises NotOn."""
    if not webhook.on:
        raise NotOn
    at = now()
    if webhook.deliveries.filter(event=Event.TEST, state=DeliveryState.WAITING).update(next_at=at):
        return
    body = canonical({"type": Event.TEST, "timestamp": at.isoformat(), "data": {"message": "This is a test."}})
    id = f"msg_{get_random_string(32)}"
    Delivery.objects.create(webhook=webhook, event=Event.TEST, message_id=id, body=body, next_at=at)


def send_again(deliveries: QuerySet[Delivery]) -> int:
    """Send these again, under the same ids, with all tries anew; return how many. Those of webhooks that are off stay.

    One that waits for its next try is tried at once.
    """
    chosen = deliveries.filter(webhook__in=Webhook.objects.filter(on=True))
    anew = {"state": DeliveryState.WAITING, "tries": 0, "status": None, "error": "", "answer": "", "delivered_at": None}
    return chosen.update(next_at=now(), **anew)
