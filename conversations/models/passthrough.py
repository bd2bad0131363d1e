"""Usage of the models under /v1, which belongs to no conversation."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class PassthroughUsage(models.Model):
    """What one key used of one model in one minute.

    It holds nothing of what was said, and is kept when its key is revoked: what was spent today stays spent.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False)
    key_id = models.BigIntegerField(help_text="The API key, which may be gone by now.")
    key_name = models.CharField(max_length=100, blank=True)
    model = models.CharField(max_length=200, blank=True, help_text="Its name at the provider. Empty: none was asked.")
    minute = models.DateTimeField(help_text="Its beginning.")
    requests = models.BigIntegerField(default=0)
    answers = models.BigIntegerField(default=0, help_text="Of the requests, those that used tokens.")
    estimated = models.BigIntegerField(default=0, help_text="Of the answers, those whose tokens are an estimate.")
    unpriced = models.BigIntegerField(default=0, help_text="Of the answers, those whose price is not known.")
    input_tokens = models.BigIntegerField(default=0)
    cached_tokens = models.BigIntegerField(default=0, help_text="Part of the input.")
    output_tokens = models.BigIntegerField(default=0)
    reasoning_tokens = models.BigIntegerField(default=0, help_text="Part of the output.")
    cost_nano_usd = models.BigIntegerField(default=0, help_text="Of the answers with a known price.")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["key_id", "model", "minute"], name="one_passthrough_usage_a_minute")
        ]
        indexes = [models.Index(fields=["user", "minute"], name="passthrough_usage_of_user")]

    def __str__(self) -> str:
        return f"{self.key_name} with {self.model} at {self.minute:%Y-%m-%d %H:%M}"
