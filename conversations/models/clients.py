"""What is known of OpenAI clients that talk to the agent, so that each goes on in its own conversation."""

from __future__ import annotations

from django.db import models

from conversations.models.account import ApiKey
from conversations.models.prompt import Prompt


class ClientMark(models.Model):
    """A digest by which a request of a client is recognised: as one sent again, or as one that follows an answer.

    It goes with the key and with the turn. What it is a digest of is said in `conversations.context.marks`.
    """

    class Kind(models.TextChoices):
        """What the digest is of."""

        REQUEST = "request", "The request that started the turn"
        ANSWER = "answer", "All texts that the client has, once it was given this answer"

    key = models.ForeignKey(ApiKey, on_delete=models.CASCADE, related_name="+")
    prompt = models.ForeignKey(Prompt, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=8, choices=Kind)
    digest = models.CharField(max_length=64)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["key", "digest", "kind", "prompt"], name="one_mark_of_a_client")]

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.prompt}"
