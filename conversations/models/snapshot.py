"""Snapshots: what a model saw besides the messages, stored once per distinct content."""

from django.db import models


class Snapshot(models.Model):
    """The system text and tool definitions of rounds. The `action_start` of a round names its snapshot."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    text = models.TextField(help_text="Canonical JSON: {system, tools: [[name, description, schema], ...]}.")

    def __str__(self) -> str:
        return self.sha256[:12]
