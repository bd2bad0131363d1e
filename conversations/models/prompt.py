"""A prompt: one turn, from what was said to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models

from conversations.models.conversation import Conversation

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User


class State(models.TextChoices):
    """Where a prompt stands. A fold of its steps: nothing else changes it."""

    QUEUED = "queued", "Queued"  # never begun
    RUNNING = "running", "Running"  # begun, whether or not a worker holds it now
    WAITING = "waiting_for_approval", "Waiting for approval"  # a person must decide; no worker is held
    COMPLETED = "completed", "Completed"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Stopped"


OPEN = (State.QUEUED, State.RUNNING, State.WAITING)
"""Where a prompt stands that more is to come of."""
ENDED = (State.COMPLETED, State.FAILED, State.CANCELLED)
"""Where it stands once it came to its one end."""
CLAIMABLE = (State.QUEUED, State.RUNNING)
"""Those of the open states in which it is a worker's to go on, not a person's."""


class Origin(models.TextChoices):
    """Who started it."""

    USER = "user", "A person"
    TRIGGER = "trigger", "A trigger"  # nobody is there to answer a card
    WORKFLOW = "workflow", "A workflow"
    API = "api", "The API"


class PromptQuerySet(models.QuerySet["Prompt"]):
    """Prompts, by who may see them and where they stand."""

    def visible_to(self, user: User | AnonymousUser) -> PromptQuerySet:
        """Those in conversations that the user owns."""
        return self.filter(conversation__owner_id=user.pk) if user.is_authenticated else self.none()

    def ended(self) -> PromptQuerySet:
        """Those that came to their one end."""
        return self.filter(state__in=ENDED)


class Prompt(models.Model):
    """One turn. The lower half belongs to the workers: they claim it, hold a lease, and write under its fence."""

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="prompts")
    number = models.PositiveIntegerField(help_text="Counts from 1 in its conversation.")
    origin = models.CharField(max_length=16, choices=Origin, default=Origin.USER)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    policy = models.CharField(max_length=100, default="agent")
    tier = models.CharField(max_length=16, default="normal")
    input = models.TextField(null=True, blank=True, help_text="What was said; empty where the system started it.")  # noqa: DJ001 - no input and an empty one differ (S4)
    visible = models.BooleanField(default=True)
    request_key = models.CharField(max_length=200, blank=True, help_text="The sender's own name for the request.")
    request_digest = models.CharField(max_length=64, blank=True, help_text="Of what was sent under that name.")
    continues = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    repeats = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="+", help_text="The turn it asks again."
    )

    state = models.CharField(max_length=24, choices=State, default=State.QUEUED)
    stop_reason = models.CharField(max_length=24, blank=True)
    rounds = models.PositiveIntegerField(default=0)
    input_tokens = models.BigIntegerField(default=0)
    cached_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    reasoning_tokens = models.BigIntegerField(default=0)
    cost_nano_usd = models.BigIntegerField(
        default=0, help_text="Billionths of a US dollar, of the answers with a price."
    )
    unpriced = models.PositiveIntegerField(default=0, help_text="Answers whose price is not known.")
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    running_seconds = models.FloatField(default=0, help_text="Waiting for people left out.")
    fence = models.BigIntegerField(default=0, help_text="Counts the claims; a write under an older one is refused.")
    lease_until = models.FloatField(default=0, help_text="Seconds since 1970 by the database's clock; 0: free.")
    claimed_at = models.FloatField(default=0)
    worker = models.CharField(max_length=100, blank=True)
    strikes = models.PositiveSmallIntegerField(default=0, help_text="Workers lost at one step without progress.")

    objects = PromptQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "number"], name="one_prompt_per_number"),
            models.UniqueConstraint(
                fields=["asked_by", "request_key"], condition=~models.Q(request_key=""), name="one_prompt_per_request"
            ),
        ]
        indexes = [
            models.Index(fields=["lease_until"], name="prompt_claimable", condition=models.Q(state__in=list(CLAIMABLE)))
        ]

    def __str__(self) -> str:
        return f"Prompt {self.number} of conversation {self.conversation_id}"

    @property
    def ended(self) -> bool:
        """Whether it came to its one end."""
        return self.state in ENDED
