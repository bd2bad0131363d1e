"""Drafts: text that is still streaming, from a round or from a running command."""

from __future__ import annotations

from django.db import models

from conversations.models.conversation import Conversation
from conversations.models.prompt import OfPromptsQuerySet, Prompt


class Draft(models.Model):
    """The text so far at one path of a running turn. Never the truth: the record with the complete text removes it.

    `fence` is the number of the claim under which it was written; a new claim starts again from "".
    """

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="drafts", db_index=False)
    prompt = models.ForeignKey(Prompt, on_delete=models.CASCADE, related_name="drafts", db_index=False)
    path = models.CharField(max_length=200)
    attempt = models.PositiveIntegerField(help_text="Counts how often its text began anew: an earlier one is no part.")
    fence = models.BigIntegerField()
    text = models.TextField()
    size = models.PositiveIntegerField(help_text="Characters of the text, to see growth without reading it.")

    objects = OfPromptsQuerySet["Draft"].as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["conversation", "prompt", "path"], name="one_draft_per_path")]

    def __str__(self) -> str:
        return f"Draft at {self.path} of prompt {self.prompt_id}"
