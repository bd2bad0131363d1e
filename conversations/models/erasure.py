"""The traces of what was taken out of ledgers: a whole conversation, or the content of one step."""

from django.db import models
from django.db.models import Exists, OuterRef

from conversations.models.step import Step


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


class Redaction(models.Model):
    """Written first in the transaction that takes one payload out; it lets the database change that step, and stays.

    The chain goes over the payload's sha256, which is kept here: the ledger still verifies. Goes with its conversation.
    What was left is in no chain: its sha256 is kept as well.
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
    """Of prompts: whether the message was taken out. There is nothing left then that could be asked again."""
    taken_out = Redaction.objects.filter(conversation=OuterRef("conversation"), seq=OuterRef("seq"))
    return Exists(Step.objects.filter(Exists(taken_out), prompt=OuterRef("pk"), path="", type="action_call"))
