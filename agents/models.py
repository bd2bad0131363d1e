"""Configuration that people change on the site."""

from __future__ import annotations

from django.db import models
from django.db.models import Q


class Skill(models.Model):
    """A skill: knowledge for an agent. It always sees the description, and the full text while the skill is active."""

    name = models.SlugField(max_length=64, unique=True, help_text="What the agent asks for it by.")
    description = models.CharField(
        max_length=1024, help_text="When to use it: all that the agent knows before it does."
    )
    body = models.TextField(help_text="What the agent is told while the skill is active, as Markdown.")
    tools = models.JSONField(
        default=list, blank=True, help_text="Names of tools that are offered only while it is active."
    )
    enabled = models.BooleanField(default=True, help_text="Agents see only enabled skills.")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class SystemPrompt(models.Model):
    """A system prompt that replaces the agent's own."""

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
