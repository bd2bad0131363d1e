"""Triggers: what starts turns by itself, at a time or by a webhook, and each time that one fired."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from agents.engine.root import AGENT
from agents.plugins.triggers.schedule import Schedule
from agents.plugins.triggers.words import in_words
from conversations.models.conversation import Conversation, OwnedQuerySet
from conversations.models.prompt import Prompt


class Overlap(models.TextChoices):
    """What becomes of a firing while the turn of an earlier one has not ended."""

    SKIP = "skip", "Leave it out"
    QUEUE = "queue", "Let it wait its turn"


class Proof(models.TextChoices):
    """How the senders of webhooks prove who they are."""

    STANDARD = "standard", "Standard Webhooks"
    GITHUB = "github", "GitHub"
    TOKEN = "token", "A token in the Authorization header"


STATES = ("on", "paused", "off", "over")
"""The states of a trigger. `off`: the site switched it off; `over`: there is no next time. Webhooks are never over."""


class TriggerQuerySet(OwnedQuerySet["Trigger"]):
    """Triggers."""

    owner, kind = "owner", ""

    def on(self) -> TriggerQuerySet:
        """Return those that can fire: neither paused nor switched off."""
        return self.filter(paused_at=None, off_reason="")

    def in_state(self, state: str) -> TriggerQuerySet:
        """Return those whose `state` is this one of STATES."""
        if state == "off":
            return self.exclude(off_reason="")
        if state == "paused":
            return self.filter(off_reason="").exclude(paused_at=None)
        over = Q(next_at=None, hook="")
        return self.on().filter(over if state == "over" else ~over)


class Trigger(models.Model):
    """What starts turns at a time, or again and again: a prompt without input, or a workflow with one.

    Its schedule is in `at`, `seconds` with `since`, or `expression`. It is due next at `slot`, and fires at `next_at`,
    which may be some seconds later, so that not all of a site fire at once. Both are empty when there is no next time.

    One that fires by webhooks has none of these, but a `hook`: the part of its URL that nobody can guess. A workflow is
    then started with what its `mapping` takes from the payload, in place of the `input`: for each field a
    `{"path": ...}` or a `{"value": ...}`; empty as long as nobody has mapped it.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="triggers")
    name = models.CharField(max_length=100)
    zone = models.CharField(max_length=64)
    at = models.DateTimeField(null=True, blank=True)
    seconds = models.PositiveIntegerField(null=True, blank=True)
    since = models.DateTimeField(null=True, blank=True)
    expression = models.CharField(max_length=100, blank=True)
    slot = models.DateTimeField(null=True, blank=True)
    next_at = models.DateTimeField(null=True, blank=True)

    hook = models.CharField(max_length=32, blank=True, help_text="Of one that webhooks fire: the id in its URL.")
    proof = models.CharField(max_length=8, choices=Proof, blank=True, help_text="How the senders of these prove it.")
    mapping = models.JSONField(default=dict, blank=True, help_text="What a workflow is given of a webhook's payload.")

    policy = models.CharField(max_length=100, default=AGENT)
    text = models.TextField(blank=True, help_text="What the agent is reminded of.")
    input = models.JSONField(default=dict, blank=True, help_text="What a workflow is started with.")
    tier = models.CharField(max_length=16, default="normal")
    overlap = models.CharField(max_length=8, choices=Overlap, default=Overlap.SKIP)
    conversation = models.ForeignKey(
        Conversation,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="triggers",
        help_text="Where its turns stand. Empty until the first, unless that is a chat.",
    )
    asked_in = models.ForeignKey(
        Conversation,
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="+",
        help_text="The chat in which the agent made it. It goes with it, because its words are from there.",
    )
    key = models.CharField(max_length=210, blank=True, help_text="Of the request that made it, which may come twice.")
    key_digest = models.CharField(max_length=64, blank=True, help_text="Of what was sent with the key.")

    created_at = models.DateTimeField(auto_now_add=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    failures = models.PositiveIntegerField(default=0, help_text="In a row.")
    off_reason = models.CharField(max_length=300, blank=True, help_text="Why the site switched it off.")

    objects = TriggerQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "key"], condition=~Q(key=""), name="one_trigger_per_request"),
            models.UniqueConstraint(fields=["hook"], condition=~Q(hook=""), name="one_trigger_per_hook"),
        ]
        indexes = [
            models.Index(fields=["next_at"], name="trigger_due", condition=Q(next_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return self.name

    def get_absolute_url(self) -> str:
        """Return the URL of its page."""
        return reverse("trigger", args=[self.pk])

    @property
    def hook_path(self) -> str:
        """The path to which webhooks are sent; "" if none fire it."""
        return reverse("hook", args=[self.hook]) if self.hook else ""

    @property
    def schedule(self) -> Schedule:
        """When it is due. One that webhooks fire has none that could be asked."""
        return Schedule(self.zone, self.at, self.seconds, self.since, self.expression)

    @property
    def when(self) -> str:
        """When it fires, in words."""
        return "by a webhook" if self.hook else in_words(self.schedule)

    @property
    def state(self) -> str:
        """One of STATES."""
        if self.off_reason:
            return "off"
        if self.paused_at:
            return "paused"
        return "on" if self.next_at or self.hook else "over"


class FiringState(models.TextChoices):
    """What became of a firing."""

    QUEUED = "queued", "Waits"
    STARTED = "started", "Started"
    FOLDED = "folded", "Counted with the turn that waits"
    SKIPPED = "skipped", "Left out"
    MISSED = "missed", "Missed"
    FAILED = "failed", "Failed"


class FiringQuerySet(models.QuerySet["Firing"]):
    """Firings."""

    def told(self) -> FiringQuerySet:
        """Return them with what a history says of each, but without the payloads, which may be large."""
        return self.select_related("prompt__conversation", "payload").defer("payload__content")


class Firing(models.Model):
    """One time that a trigger was due, was run by hand, or got a webhook, and what became of it.

    `slot`: when it was due; empty otherwise. `webhook_id`: the sender's own id of a webhook. `times`: how many such
    times in a row the row stands for, of those that were missed, or of webhooks that were refused. `prompt`: the turn
    that was started, or to which it was counted. `open`: that turn has not been seen to end.
    """

    trigger = models.ForeignKey(Trigger, on_delete=models.CASCADE, related_name="firings", db_index=False)
    slot = models.DateTimeField(null=True, blank=True)
    webhook_id = models.CharField(max_length=200, blank=True)
    state = models.CharField(max_length=8, choices=FiringState)
    reason = models.TextField(blank=True)
    times = models.PositiveIntegerField(default=1)
    prompt = models.ForeignKey(Prompt, null=True, blank=True, on_delete=models.SET_NULL, related_name="firings")
    open = models.BooleanField(default=False)
    fired_at = models.DateTimeField(auto_now_add=True)

    objects = FiringQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(fields=["trigger", "slot"], name="one_firing_per_slot"),
            models.UniqueConstraint(
                fields=["trigger", "webhook_id"], condition=~Q(webhook_id=""), name="one_firing_per_webhook"
            ),
        ]
        indexes = [
            models.Index(fields=["trigger", "-id"], name="firing_history"),
            models.Index(fields=["trigger"], name="firing_open", condition=Q(open=True)),
            models.Index(fields=["trigger", "id"], name="firing_queued", condition=Q(state=FiringState.QUEUED)),
        ]

    def __str__(self) -> str:
        return f"Firing {self.pk} of trigger {self.trigger_id}"

    @property
    def can_start_again(self) -> bool:
        """Whether it failed to start, and what came with its webhook is still there."""
        return self.state == FiringState.FAILED and hasattr(self, "payload")


class Payload(models.Model):
    """What came with a webhook: kept until its firing has started, and of the last one that started, as a sample."""

    firing = models.OneToOneField(Firing, on_delete=models.CASCADE, related_name="payload")
    media_type = models.CharField(max_length=100, blank=True)
    content = models.BinaryField()
    size = models.PositiveIntegerField(help_text="Bytes of the content.")

    def __str__(self) -> str:
        return f"Payload of firing {self.firing_id}"


class HookSecret(models.Model):
    """A secret by which senders of webhooks prove who they are, encrypted (conversations.triggers.hooks.secrets)."""

    trigger = models.ForeignKey(Trigger, on_delete=models.CASCADE, related_name="hook_secrets")
    ciphertext = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"Secret {self.pk} of trigger {self.trigger_id}"
