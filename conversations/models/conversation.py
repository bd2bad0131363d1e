"""Conversations: a person, an agent, and the turns between them."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Self, TypeVar

from django.conf import settings
from django.db import models
from django.urls import reverse

if TYPE_CHECKING:
    from django.contrib.auth.models import AnonymousUser, User

Row = TypeVar("Row", bound=models.Model)


class ConversationKind(models.TextChoices):
    """What a conversation was started for."""

    CHAT = "chat", "Chat"
    RUN = "run", "Run of a workflow"
    HIDDEN = "hidden", "Hidden"  # a turn behind a page, such as one that fills in a form


class OwnedQuerySet(models.QuerySet[Row]):
    """Rows of a conversation, filtered by who may see them. `kind` is "" for rows that belong to none yet."""

    owner, kind = "conversation__owner", "conversation__kind"

    def owned_by(self, user: User | AnonymousUser) -> Self:
        """Return the rows this user owns, also of hidden conversations: for the page behind which one stands."""
        return self.filter(**{self.owner: user.pk}) if user.is_authenticated else self.none()

    def visible_to(self, user: User | AnonymousUser) -> Self:
        """Return the rows this user owns, but for hidden conversations.

        Only the admin shows other people's, and it has its own rules.
        """
        mine = self.owned_by(user)
        return mine.exclude(**{self.kind: ConversationKind.HIDDEN}) if self.kind else mine


class ConversationQuerySet(OwnedQuerySet["Conversation"]):
    """Conversations."""

    owner, kind = "owner", "kind"

    def listed(self) -> Self:
        """Return everybody's conversations, but for hidden ones."""
        return self.exclude(kind=ConversationKind.HIDDEN)


class Conversation(models.Model):
    """A conversation: its owner, the end of its ledger, and the prompt that holds its slot."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="conversations")
    title = models.CharField(max_length=200, blank=True)
    kind = models.CharField(max_length=8, choices=ConversationKind, default=ConversationKind.CHAT)
    system_prompt = models.ForeignKey(
        "agents.SystemPrompt", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    seq = models.BigIntegerField(default=0, editable=False, help_text="The number of its last step.")
    head = models.CharField(max_length=64, blank=True, editable=False, help_text="The digest of its last step.")
    active_prompt = models.OneToOneField(
        "Prompt",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        editable=False,
        help_text="The slot: the one prompt that may run or wait.",
    )
    archived_at = models.DateTimeField(
        null=True, blank=True, help_text="When it was put away; empty: it is in the list."
    )
    seen_seq = models.BigIntegerField(
        default=0, editable=False, help_text="The last step its owner had on a page in view."
    )
    unsaid = models.BigIntegerField(
        default=0,
        db_index=True,
        editable=False,
        help_text="The number, among those of all conversations, of its last change that no step records.",
    )
    workspace_bytes = models.BigIntegerField(
        default=0, editable=False, help_text="What its workspace held when it was last measured."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(
        auto_now=True, help_text="When a turn last began, paused, went on or ended, or a person did something."
    )

    objects = ConversationQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["owner", "-updated_at"], name="conversation_list"),
            # Chats apart from runs, of which a person may have a hundred times as many; and what has not ended.
            models.Index(fields=["owner", "kind", "-updated_at"], name="conversation_kind"),
            models.Index(fields=["owner"], name="conversation_open", condition=models.Q(active_prompt__isnull=False)),
            models.Index(
                fields=["owner", "workspace_bytes"],
                name="conversation_workspace",
                condition=models.Q(workspace_bytes__gt=0),
            ),
        ]

    def __str__(self) -> str:
        return self.title or f"Conversation {self.pk}"

    def get_absolute_url(self) -> str:
        """Return the URL of its page."""
        return reverse("conversation", args=[self.pk])

    @property
    def last_step_at(self) -> datetime:
        """The time of its last step; that at which it was begun, if there is none."""
        last: datetime | None = self.steps.filter(seq=self.seq).values_list("time", flat=True).first()
        return last or self.created_at
