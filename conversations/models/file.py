"""Files: made by a tool, or uploaded by a person."""

from __future__ import annotations

from django.db import models

from conversations.models.conversation import Conversation, OwnedQuerySet


class File(models.Model):
    """A file. Its content is in Django's storage, under a name the site chose, before the row exists."""

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="files")
    prompt = models.ForeignKey(
        "Prompt",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="files",
        help_text="With which it was given; empty: a tool made it.",
    )
    path = models.CharField(
        max_length=255, blank=True, help_text="Of one that was given: where it lies in the workspace."
    )
    content = models.FileField(upload_to="%Y/%m/")
    name = models.CharField(max_length=255, help_text="The name it is offered under.")
    media_type = models.CharField(max_length=100)
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    summary = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = OwnedQuerySet["File"].as_manager()

    def __str__(self) -> str:
        return f"File {self.pk}"
