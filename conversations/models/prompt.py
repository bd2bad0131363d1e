"""Prompts: the database row of a turn, from its message to its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from django.conf import settings
from django.db import models

from agents.engine import actors
from conversations.models.conversation import Conversation, OwnedQuerySet, Row

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class State(models.TextChoices):
    """The state of a prompt. It is a fold of the prompt's steps: nothing else changes it."""

    QUEUED = "queued", "Queued"  # not started yet
    RUNNING = "running", "Running"  # started, whether or not a worker holds it now
    WAITING = "waiting_for_approval", "Waiting for approval"  # a person must decide; no worker is occupied
    SLEEPING = "sleeping", "Sleeping"  # until `wake_at`; nobody has to act, and no worker is occupied
    COMPLETED = "completed", "Completed"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Stopped"


OPEN = (State.QUEUED, State.RUNNING, State.WAITING, State.SLEEPING)
"""States of a prompt that has not ended."""
ENDED = (State.COMPLETED, State.FAILED, State.CANCELLED)
"""States of a prompt that has ended. They are final."""
CLAIMABLE = (State.QUEUED, State.RUNNING)
"""The open states in which a worker can claim the prompt. In the others, a person has to act, or time to pass."""


class Origin(models.TextChoices):
    """Who started the turn."""

    USER = "user", "A person"
    TRIGGER = "trigger", "A trigger"
    WORKFLOW = "workflow", "A workflow"
    API = "api", "The API"
    COMMAND = "command", "The command line"


class OfPromptsQuerySet(OwnedQuerySet[Row]):
    """Rows of a conversation and a prompt. Keys and queries name the conversation first: tables can be split by it."""

    def of(self, *prompts: Prompt) -> Self:
        """Return the rows of these prompts."""
        return self.filter(conversation__in={prompt.conversation_id for prompt in prompts}, prompt__in=prompts)


ATTENDED = (
    models.Q(asked_by__isnull=False)
    & ~models.Q(origin=Origin.TRIGGER)
    & (models.Q(input__isnull=False) | models.Q(continues__isnull=False))
)
"""A person asked for the turn, see `Prompt.attended`."""


class PromptQuerySet(OwnedQuerySet["Prompt"]):
    """Prompts, filtered by who may see them, by their state, and by whether a person asked for them."""

    def attended(self) -> PromptQuerySet:
        """Return the prompts that a person asked for by a message or to go on."""
        return self.filter(ATTENDED)

    def unattended(self) -> PromptQuerySet:
        """Return the prompts that the system started."""
        return self.exclude(ATTENDED)

    def ended(self) -> PromptQuerySet:
        """Return the prompts that have ended."""
        return self.filter(state__in=ENDED)


class Prompt(models.Model):
    """One turn. The last fields belong to the workers, which claim it, hold a lease and write under its fence."""

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="prompts", db_index=False)
    number = models.PositiveIntegerField(help_text="Counts from 1 in its conversation.")
    origin = models.CharField(max_length=16, choices=Origin, default=Origin.USER)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    policy = models.CharField(max_length=100, default="agent")
    tier = models.CharField(max_length=16, default="normal")
    input = models.TextField(null=True, blank=True, help_text="What was said; empty where the system started it.")  # noqa: DJ001 - no input and an empty one differ (S4)
    from_client = models.JSONField(
        default=dict,
        blank=True,
        help_text="What an OpenAI client sent besides: `quotes`, and the `form` of the answer.",
    )
    trigger = models.ForeignKey(
        "conversations.Trigger",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="prompts",
        db_index=False,
        help_text="What started it, as long as there is that.",
    )
    reminder = models.TextField(null=True, blank=True, help_text="What the trigger says that started the turn.")  # noqa: DJ001 - see `input`
    visible = models.BooleanField(default=True)
    request_key = models.CharField(max_length=200, blank=True, help_text="The sender's own name for the request.")
    request_digest = models.CharField(max_length=64, blank=True, help_text="Of what was sent under that name.")
    together = models.CharField(
        max_length=40, blank=True, help_text="What it was started as a part of, which counts as one turn at once."
    )
    continues = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    repeats = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        help_text="The turn it asks again.",
    )

    state = models.CharField(max_length=24, choices=State, default=State.QUEUED)
    stop_reason = models.CharField(max_length=24, blank=True)
    rounds = models.PositiveIntegerField(default=0)
    pauses = models.PositiveIntegerField(default=0, help_text="How often it has waited for people.")
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
    wake_at = models.DateTimeField(null=True, blank=True, help_text="When the next of its sleeps is over.")
    announced = models.BooleanField(default=False, editable=False, help_text="Whom to tell of its end was looked at.")

    running_seconds = models.FloatField(default=0, help_text="Waiting for people left out.")
    fence = models.BigIntegerField(default=0, help_text="Counts the claims; a write under an older one is refused.")
    lease_until = models.FloatField(default=0, help_text="Seconds since 1970 by the database's clock; 0: free.")
    claimed_at = models.FloatField(default=0)
    worker = models.CharField(max_length=100, blank=True)
    strikes = models.PositiveSmallIntegerField(default=0, help_text="Workers lost at one step without progress.")
    outages = models.PositiveSmallIntegerField(default=0, help_text="Outages of the database there, likewise.")

    objects = PromptQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        permissions = [("start_policy", "Can start policies by name")]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "number"], name="one_prompt_per_number"),
            models.UniqueConstraint(
                fields=["asked_by", "request_key"], condition=~models.Q(request_key=""), name="one_prompt_per_request"
            ),
        ]
        indexes = [
            # Those that have just ended: a turn is in it for seconds.
            models.Index(
                fields=["ended_at"],
                name="prompt_unannounced",
                condition=models.Q(announced=False, ended_at__isnull=False),
            ),
            models.Index(fields=["conversation", "ended_at"], name="prompt_ended"),  # its last turns, for its history
            models.Index(
                fields=["lease_until"], name="prompt_claimable", condition=models.Q(state__in=list(CLAIMABLE))
            ),
            # The first that is queued in a conversation, for each that could be claimed.
            models.Index(fields=["conversation", "id"], name="prompt_queued", condition=models.Q(state=State.QUEUED)),
            models.Index(fields=["wake_at"], name="prompt_sleeping", condition=models.Q(wake_at__isnull=False)),
            # Few turns go on or repeat another. Of an index of all, SQLite thinks that most have the same one, NULL,
            # and read the whole table instead: on a page of 100 turns, once for each.
            models.Index(fields=["continues"], name="prompt_continues", condition=models.Q(continues__isnull=False)),
            models.Index(fields=["trigger"], name="prompt_triggered", condition=models.Q(trigger__isnull=False)),
            models.Index(fields=["repeats"], name="prompt_repeats", condition=models.Q(repeats__isnull=False)),
            models.Index(fields=["policy", "-id"], name="prompt_runs"),  # the runs of a workflow, the newest first
            # A person's runs, the newest first: all of them, and those of a workflow. Chats are not in these indexes.
            models.Index(fields=["asked_by", "-id"], name="prompt_history", condition=~models.Q(policy="agent")),
            models.Index(fields=["asked_by", "policy", "-id"], name="prompt_last", condition=~models.Q(policy="agent")),
        ]

    def __str__(self) -> str:
        return f"Prompt {self.number} of conversation {self.conversation_id}"

    @property
    def attended(self) -> bool:
        """Whether a person asked for the turn by a message or to go on, and so is there for it.

        If not, the system started it (S4), by itself, or by a trigger as its owner or staff asked: it waits in a
        queue, and nobody answers a card about an interrupted call.
        """
        if self.asked_by_id is None or self.origin == Origin.TRIGGER:
            return False
        return self.input is not None or self.continues_id is not None

    @property
    def starter(self) -> User | None:
        """Who started the turn: nobody, if a trigger did, even one of theirs, or the system."""
        return None if self.origin == Origin.TRIGGER else self.asked_by

    @property
    def asker(self) -> str:
        """The actor of its root call: who asked for it, or the system."""
        return actors.user(self.asked_by_id) if self.asked_by_id and self.attended else "system"

    @property
    def ended(self) -> bool:
        """Whether the turn has ended."""
        return self.state in ENDED
