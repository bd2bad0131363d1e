"""Skills: knowledge that an agent takes up when it is needed."""

from __future__ import annotations

from django.db import models


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
