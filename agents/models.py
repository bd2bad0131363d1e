"""Configuration that people change on the site."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class SystemPrompt(models.Model):
    """What a model is told before all else, in place of the agent's own words."""

    name = models.CharField(max_length=100, unique=True)
    text = models.TextField()
    is_default = models.BooleanField(default=False, help_text="For conversations that name none.")

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["is_default"], condition=Q(is_default=True), name="one_default_prompt")
        ]

    def __str__(self) -> str:
        return self.name
