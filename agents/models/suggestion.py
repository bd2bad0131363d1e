"""What the page of a new conversation suggests to ask."""

from __future__ import annotations

from django.db import models


class Suggestion(models.Model):
    """A message that the page of a new conversation suggests, in place of those of the demo model."""

    SHOWN_MOST = 3

    text = models.CharField(max_length=200, help_text="What is sent when somebody clicks it.")
    order = models.PositiveSmallIntegerField(
        default=1, help_text=f"The lowest comes first. The first {SHOWN_MOST} are shown."
    )

    class Meta:
        ordering = ["order", "id"]

    def __str__(self) -> str:
        return self.text

    @classmethod
    def shown(cls) -> list[str]:
        """Return the texts that are shown, in order; none if no administrator wrote any."""
        return list(cls.objects.values_list("text", flat=True)[: cls.SHOWN_MOST])
