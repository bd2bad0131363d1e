"""Secrets of runs: values that a person gave a workflow, encrypted, for as long as the run lasts."""

from __future__ import annotations

from django.db import models

from conversations.models.conversation import Conversation
from conversations.models.prompt import OfPromptsQuerySet, Prompt


class RunSecret(models.Model):
    """The value of one field of a run's input. The ledger holds only a reference to it, by the name of the field.

    It goes in the record that ends the run, and no backup has it.
    """

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="+", db_index=False)
    prompt = models.ForeignKey(Prompt, on_delete=models.CASCADE, related_name="+", db_index=False)
    field = models.CharField(max_length=100)
    ciphertext = models.TextField()

    objects = OfPromptsQuerySet["RunSecret"].as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["conversation", "prompt", "field"], name="one_secret_per_field")]

    def __str__(self) -> str:
        return f"Secret {self.field} of prompt {self.prompt_id}"
