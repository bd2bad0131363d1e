"""Erasures and redactions: what was removed from the record, a whole conversation or the content of one step."""

from django.db import models
from django.db.models import Exists, OuterRef

from conversations.models.step import Step


class Erasure(models.Model):
    """A conversation that was erased. Written first in the erasing transaction, so that the triggers allow it."""

    conversation_id = models.BigIntegerField(unique=True, help_text="The id the conversation had.")
    erased_by = models.CharField(max_length=150)
    erased_at = models.DateTimeField(auto_now_add=True)
    reason = models.TextField(blank=True)
    steps = models.BigIntegerField(help_text="How many steps its ledger had.")
    head = models.CharField(max_length=64, blank=True, help_text="The digest of its last step.")

    def __str__(self) -> str:
        return f"Conversation {self.conversation_id}, erased by {self.erased_by}"


class Redaction(models.Model):
    """A payload that was redacted. Written first in the redacting transaction, so that the triggers allow it.

    The chain covers the SHA-256 of the original payload, which is kept here, so the ledger still verifies. The chain
    does not cover the payload that replaced it, so its SHA-256 is kept too. Deleted together with the conversation.
    """

    conversation = models.ForeignKey("Conversation", on_delete=models.CASCADE, related_name="redactions")
    seq = models.BigIntegerField(help_text="Of the step.")
    sha256 = models.CharField(max_length=64, help_text="Of the payload that stood there.")
    left_sha256 = models.CharField(max_length=64, help_text="Of the payload that was left in its place.")
    redacted_by = models.CharField(max_length=150)
    redacted_at = models.DateTimeField(auto_now_add=True)
    reason = models.TextField(blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["conversation", "seq"], name="one_redaction_per_step")]
        permissions = [("redact", "Can redact steps")]

    def __str__(self) -> str:
        return f"Step {self.seq} of conversation {self.conversation_id}, redacted by {self.redacted_by}"


def message_redacted() -> Exists:
    """Return a condition on prompts: their message was redacted, so there is nothing left that could be asked again."""
    taken_out = Redaction.objects.filter(conversation=OuterRef("conversation"), seq=OuterRef("seq"))
    opening = Step.objects.filter(
        conversation=OuterRef("conversation"), prompt=OuterRef("pk"), path="", type="action_call"
    )
    return Exists(opening.filter(Exists(taken_out)))
