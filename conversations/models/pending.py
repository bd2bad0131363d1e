"""Pending files: what people uploaded for runs that have not started yet."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from conversations.models.conversation import OwnedQuerySet


class PendingFileQuerySet(OwnedQuerySet["PendingFile"]):
    """Pending files."""

    owner, kind = "owner", ""


class PendingFile(models.Model):
    """A file that a person uploaded, and no run has taken yet. It is theirs alone, and goes after a day.

    Its content is in Django's storage like that of a File, before the row exists. The run that takes it makes a File of
    the same content, and this row goes in the same transaction.
    """

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    token = models.CharField(max_length=64, unique=True)
    content = models.FileField(upload_to="%Y/%m/")
    name = models.CharField(max_length=255)
    media_type = models.CharField(max_length=100)
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True, db_index=True)

    objects = PendingFileQuerySet.as_manager()

    def __str__(self) -> str:
        return f"Pending file {self.pk}"
