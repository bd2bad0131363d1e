"""What a model saw besides the history, stored once per distinct content."""

from django.db import models


class Snapshot(models.Model):
    """System text and tool definitions of rounds; a round's `action_start` names it."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    text = models.TextField(help_text="Canonical JSON: {system, tools: [[name, description, schema], ...]}.")

    def __str__(self) -> str:
        return self.sha256[:12]
