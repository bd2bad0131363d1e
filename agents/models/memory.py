"""Memories: what an agent keeps of a person across conversations, and whether they have it switched on."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from agents.models.searched import Searched


class Memory(Searched):
    """A short text about a person, of which their agent is told in later conversations. Nobody else is shown it."""

    TEXT_MOST = 2_000
    """Characters of one memory."""
    MOST = 1_000
    """Memories of one person."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memories", help_text="Whom it is about."
    )
    text = models.TextField(max_length=TEXT_MOST)
    pinned = models.BooleanField(default=False, help_text="The agent is told of it whatever the conversation is about.")
    prompt = models.PositiveBigIntegerField(
        null=True, blank=True, help_text="The turn in which the agent saved it. Empty: the person wrote it."
    )
    key = models.CharField(max_length=64, blank=True, help_text="Of the call that saved it, which may run twice.")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-pinned", "-id"]
        verbose_name_plural = "memories"
        indexes = [models.Index(fields=["user", "-pinned", "-id"], name="memories_of_person")]
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], condition=~Q(key=""), name="one_memory_a_call"),
        ]

    def __str__(self) -> str:
        return f"Memory {self.pk}"  # never its text: the admin lists what goes with a person

    @property
    def collection(self) -> str:
        """That of its person: nothing is ever found across people."""
        return memories_of(self.user_id)

    def searched(self) -> tuple[str, str]:
        """Return that it has no title, and its text."""
        return "", self.text


def memories_of(user: int) -> str:
    """Return the name of the collection in which the memories of this person are found."""
    return f"memory:{user}"


class MemoryStanding(models.Model):
    """How memory stands for a person. The row is created with their first memory, or when they first switch it off.

    Turns keep it at hand, as `conversations.database.changes` counts its rows and `is_on`; the version, which each
    change of a memory raises, is read anew. So what one person saves makes no turn of anybody else read again.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="memory_standing"
    )
    is_on = models.BooleanField(default=True, help_text="Off: memories are kept, and no agent is told of them.")
    version = models.PositiveBigIntegerField(default=0, help_text="Rises with each change of a memory.")

    def __str__(self) -> str:
        return f"Memory of {self.user}"
