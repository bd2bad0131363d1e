"""Outgoing webhooks: the addresses that are told of events, and each time that one is told."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.conf import settings
from django.db import models
from django.db.models import Q

from conversations.models.prompt import Prompt
from conversations.models.trigger import Trigger


class Event(models.TextChoices):
    """What webhooks are told of."""

    REQUESTED = "approval.requested", "An approval was requested"
    DECIDED = "approval.decided", "An approval was decided"
    ENDED = "turn.ended", "A turn ended"
    TRIGGER = "trigger.failed", "A trigger failed"
    TEST = "webhook.test", "A test"


class Webhook(models.Model):
    """An address that is told of events: the site's, of everybody's, or one person's, of what they chose.

    `ciphertext`: the secret that signs what is sent, encrypted (conversations.notifications.webhooks.managing).
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="webhook",
        help_text="Whose it is. Empty: the site's.",
    )
    url = models.CharField("URL", max_length=500)
    ciphertext = models.TextField(editable=False)
    events = models.JSONField(default=list, help_text="Of one of the site: what it is told of.")
    on = models.BooleanField(default=True)
    off_reason = models.CharField(max_length=300, blank=True, editable=False, help_text="Why the site switched it off.")
    failing_since = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-pk"]
        permissions = [("have_webhook", "Can have a webhook of their own")]

    def __str__(self) -> str:
        return f"Webhook to {self.host}"

    @property
    def host(self) -> str:
        """The host that it is sent to. The rest of the address may be a secret."""
        return urlsplit(self.url).hostname or ""


class DeliveryState(models.TextChoices):
    """Where a delivery stands."""

    WAITING = "waiting", "Waiting"
    DELIVERED = "delivered", "Delivered"
    FAILED = "failed", "Failed"


class Delivery(models.Model):
    """One event that a webhook is told of. It is due at `next_at`, which is empty when it is over.

    `message_id`, its webhook-id, is made from the event and its subject, so that nothing is told twice under different
    names. What stands in the `body` is from the turn or the trigger, and goes with it.
    """

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries", db_index=False)
    event = models.CharField(max_length=24, choices=Event)
    message_id = models.CharField("webhook-id", max_length=64)
    prompt = models.ForeignKey(Prompt, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    trigger = models.ForeignKey(Trigger, null=True, blank=True, on_delete=models.CASCADE, related_name="+")
    body = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)
    state = models.CharField(max_length=12, choices=DeliveryState, default=DeliveryState.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    next_at = models.DateTimeField("next try", null=True, blank=True)
    status = models.PositiveSmallIntegerField(null=True, blank=True, help_text="Of the last answer.")
    error = models.CharField(max_length=300, blank=True, help_text="What was wrong with the last try.")
    answer = models.CharField(max_length=500, blank=True, help_text="How the answer to a failed try began.")
    delivered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "deliveries"
        constraints = [models.UniqueConstraint(fields=["webhook", "message_id"], name="one_delivery_per_event")]
        indexes = [
            models.Index(fields=["next_at"], name="delivery_due", condition=Q(next_at__isnull=False)),
            models.Index(fields=["webhook", "next_at"], name="delivery_next", condition=Q(next_at__isnull=False)),
            models.Index(fields=["webhook", "-id"], name="delivery_log"),
        ]

    def __str__(self) -> str:
        return f"Delivery {self.pk} of {self.event}"
