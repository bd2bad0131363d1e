"""Sending webhooks in the background: a receiver may be slow, or away for hours.

Each try is claimed first, by moving the time of the next one, so that two processes never send the same. One that is
killed meanwhile sends nothing more, and the delivery is tried again CLAIM_SECONDS later under the same id: it may
arrive twice, and receivers recognise it by its id.
"""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from random import SystemRandom
from time import monotonic

from django.db import Error, connection
from django.db.models import F

from conversations.models import Delivery, DeliveryState, Webhook
from conversations.notifications.webhooks.managing import (
    NOT_ALLOWED,
    PERMISSION,
    SWITCHED_OFF,
    drop_waiting,
    now,
    secret_of,
    switch_off,
)
from conversations.notifications.webhooks.posting import Outcome, post

logger = logging.getLogger(__name__)

WAITS_SECONDS = (5, 300, 1800, 2 * 3600, 5 * 3600, 6 * 3600, 10 * 3600)
"""Time before each further try: eight tries in a day, as https://www.standardwebhooks.com recommends."""
TRIES = len(WAITS_SECONDS) + 1
JITTER = 0.1
"""By how much of itself such a time is longer or shorter, so that not all come back at once."""
RETRY_AFTER_MOST = 6 * 3600.0
"""How long a receiver can have a try put off, in seconds."""
CLAIM_SECONDS = 120
"""After which a try counts as cut off: far longer than one lasts."""
AT_ONCE = 50
"""Deliveries to one webhook in a row; the next round follows in seconds."""
ROUND_SECONDS = 20.0
"""After which a webhook makes room for another one: a slow receiver keeps its thread no longer."""
THREADS_MOST = 8
"""Webhooks that are sent to at the same time."""
REST_SECONDS = 15
"""How long a webhook rests whose receiver can take nothing at the moment."""
FAILING_MOST = timedelta(days=5)
"""A webhook at which everything has failed for so long is switched off."""
UNREADABLE = "Its secret cannot be read, because SECRET_KEY was changed. Make a new one."


class Sender:
    """Sends what is due. Each webhook has a thread of its own: one that hangs holds up no other."""

    def __init__(self) -> None:
        self._threads: dict[int, threading.Thread] = {}  # by webhook
        self._rests: dict[int, float] = {}  # until when each webhook rests, by the monotonic clock
        self._served: dict[int, float] = {}  # when each last had a thread

    def look(self) -> None:
        """Start sending what is due, unless a webhook needs a pause. Returns at once."""
        self._threads = {pk: thread for pk, thread in self._threads.items() if thread.is_alive()}
        free = THREADS_MOST - len(self._threads)
        if not free:
            return
        ready = [pk for pk in due() if pk not in self._threads and self._rests.get(pk, 0) <= monotonic()]
        ready.sort(key=lambda pk: self._served.get(pk, 0.0))  # else those with a backlog come first for ever
        for pk in ready[:free]:
            self._served[pk] = monotonic()
            self._threads[pk] = threading.Thread(target=self._round, args=[pk], name="webhooks", daemon=True)
            self._threads[pk].start()

    def _round(self, pk: int) -> None:
        try:
            if not serve(pk):
                self._rests[pk] = monotonic() + REST_SECONDS
        except Error:
            logger.warning("the database does not answer; a webhook is sent later", exc_info=True)
        except Exception:
            self._rests[pk] = monotonic() + REST_SECONDS
            logger.exception("a webhook could not be sent; trying again", extra={"webhook": pk})
        finally:
            connection.close()


def due() -> list[int]:
    """Return the webhooks that have something due, by primary key."""
    return list(Delivery.objects.filter(next_at__lte=now()).order_by().values_list("webhook", flat=True).distinct())


def send_due() -> int:
    """Send everything that is due, one after the other; return to how many webhooks."""
    found = due()
    for pk in found:
        serve(pk)
    return len(found)


def serve(pk: int) -> bool:
    """Send a webhook what is due, for a round. Return False if its receiver can take nothing at the moment."""
    until = monotonic() + ROUND_SECONDS
    for _ in range(AT_ONCE):
        delivery = _claim(pk) if monotonic() < until else None
        if delivery is None:
            return True
        if why := _why_not(delivery.webhook):
            drop_waiting(delivery.webhook.deliveries.all(), why)
            return True
        secret = secret_of(delivery.webhook)
        outcome = Outcome(error=UNREADABLE)
        if secret:
            outcome = post(delivery.webhook.url, secret, delivery.message_id, delivery.body)
        _record(delivery, outcome)
        if outcome.away:
            return False
    return True


def _why_not(webhook: Webhook) -> str:
    """Return why a webhook gets nothing; "" if it does."""
    if not webhook.on:  # it was switched off while this was being stored
        return SWITCHED_OFF
    return NOT_ALLOWED if webhook.user and not webhook.user.has_perm(PERMISSION) else ""


def _claim(pk: int) -> Delivery | None:
    """Return a delivery that is due to this webhook, and that nobody else tries now; None if there is none."""
    at = now()
    waiting = Delivery.objects.filter(webhook=pk, next_at__lte=at).select_related("webhook__user")
    for delivery in waiting.order_by("next_at", "pk")[:AT_ONCE]:
        until = at + timedelta(seconds=CLAIM_SECONDS)
        if Delivery.objects.filter(pk=delivery.pk, next_at=delivery.next_at).update(next_at=until):
            delivery.next_at = until
            return delivery
    return None


def _record(delivery: Delivery, outcome: Outcome) -> None:
    """Record what came of a try, unless it was cut off and is tried by another process, or was sent again by hand."""
    at, tries = now(), delivery.tries + 1
    state = DeliveryState.WAITING if outcome.error else DeliveryState.DELIVERED
    if outcome.error and tries >= TRIES:
        state = DeliveryState.FAILED
    claimed = Delivery.objects.filter(pk=delivery.pk, next_at=delivery.next_at)
    claimed.update(
        state=state,
        tries=F("tries") + 1,
        next_at=at + _wait(tries, outcome) if state == DeliveryState.WAITING else None,
        status=outcome.status,
        error=outcome.error[:300],
        answer=outcome.answer,
        delivered_at=at if state == DeliveryState.DELIVERED else None,
    )
    this = Webhook.objects.filter(pk=delivery.webhook_id, url=delivery.webhook.url)  # of another, this says nothing
    if not outcome.error:
        this.exclude(failing_since=None).update(failing_since=None)
        return
    logger.warning("a webhook was not delivered: %s", outcome.error, extra={"webhook": delivery.webhook_id})
    this.filter(failing_since=None).update(failing_since=at)
    if outcome.gone and this.exists():
        switch_off(delivery.webhook, "Its receiver answered 410: it wants no more webhooks.")
    elif state == DeliveryState.FAILED and this.filter(failing_since__lte=at - FAILING_MOST).exists():
        switch_off(delivery.webhook, f"Nothing could be delivered for {FAILING_MOST.days} days.")


def _wait(tries: int, outcome: Outcome) -> timedelta:
    """Return the time until the next try: as long as the receiver asked for, if that is longer, within bounds."""
    usual = WAITS_SECONDS[tries - 1] * SystemRandom().uniform(1 - JITTER, 1 + JITTER)
    return timedelta(seconds=max(usual, min(outcome.retry_seconds, RETRY_AFTER_MOST)))
