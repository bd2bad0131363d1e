"""The trace of a conversation that was erased."""

from django.db import models


class Erasure(models.Model):
    """Written first in the transaction that erases; it lets the database give up the steps, and it stays."""

    conversation_id = models.BigIntegerField(unique=True, help_text="The id the conversation had.")
    erased_by = models.CharField(max_length=150)
    erased_at = models.DateTimeField(auto_now_add=True)
    reason = models.TextField(blank=True)
    steps = models.BigIntegerField(help_text="How many steps its ledger had.")
    head = models.CharField(max_length=64, blank=True, help_text="The digest of its last step.")

    def __str__(self) -> str:
        return f"Conversation {self.conversation_id}, erased by {self.erased_by}"
