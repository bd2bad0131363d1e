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
