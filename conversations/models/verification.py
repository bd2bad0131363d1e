"""Verifications: the results of checking all ledgers."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class Verification(models.Model):
    """One run of the nightly check or of `manage.py verify_ledger --all`."""

    nightly = models.BooleanField(default=False, help_text="By schedule; else a person asked for it.")
    started_at = models.DateTimeField(auto_now_add=True)
    beat_at = models.DateTimeField(default=timezone.now, help_text="When it last went on.")
    ended_at = models.DateTimeField(null=True, blank=True)
    conversations = models.PositiveIntegerField(default=0)
    steps = models.BigIntegerField(default=0)
    count = models.PositiveIntegerField(default=0, help_text="How many problems there were.")
    problems = models.TextField(blank=True, help_text="The first of them, a line each.")

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.conversations} conversations, {self.count} problems"
