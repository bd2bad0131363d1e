"""Usage: the tokens and price of each answer of a model, written in the same record as the answer."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Usage(models.Model):
    """The tokens of one answer, and its price if known. A fold of the steps, like outputs.

    It holds nothing of what was said, and is kept when its conversation is erased: what was spent today stays spent.
    """

    conversation_id = models.BigIntegerField(help_text="The conversation, which may be gone by now.")
    prompt_id = models.BigIntegerField()
    path = models.CharField(max_length=200, help_text="Of the question to the model.")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    model = models.CharField(max_length=200, blank=True)
    time = models.DateTimeField()
    input_tokens = models.BigIntegerField(default=0)
    cached_tokens = models.BigIntegerField(default=0, help_text="Part of the input.")
    output_tokens = models.BigIntegerField(default=0)
    reasoning_tokens = models.BigIntegerField(default=0, help_text="Part of the output.")
    cost_nano_usd = models.BigIntegerField(null=True, help_text="Billionths of a US dollar; empty: no price is known.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation_id", "prompt_id", "path"], name="one_usage_per_answer")
        ]
        indexes = [
            models.Index(fields=["user", "time"], name="usage_of_user"),
        ]

    def __str__(self) -> str:
        return f"Answer at {self.path} of prompt {self.prompt_id}"
