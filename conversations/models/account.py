"""Per-user models besides Django's user: settings, quota and API keys."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from knox.models import AbstractAuthToken, AuthTokenManager
from knox.settings import CONSTANTS


class Account(models.Model):
    """A user's settings. The row is created when it is first needed."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="account")
    zone = models.CharField(max_length=64, blank=True, help_text="Their time zone. Empty: the site's.")
    quiet_from = models.TimeField(null=True, blank=True, help_text="When their quiet hours begin, in their zone.")
    quiet_to = models.TimeField(null=True, blank=True, help_text="When these end; before the beginning: the next day.")
    looked_at = models.FloatField(default=0, help_text="When a page of theirs was last in view (database's clock).")
    mailed_at = models.FloatField(default=0, help_text="When they were last notified by e-mail (database's clock).")

    def __str__(self) -> str:
        return f"Account of {self.user}"


class Quota(models.Model):
    """One user's limits. An empty field falls back to the site-wide setting of the same name."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="quota")
    running_prompts = models.PositiveIntegerField(
        null=True, blank=True, help_text="Turns that run or queue at a time. Empty: the site's."
    )
    tokens_a_day = models.PositiveBigIntegerField(
        null=True,
        blank=True,
        help_text="Of the last 24 hours, in conversations and under /v1. Empty: the site's; 0: no limit.",
    )
    requests_a_minute = models.PositiveIntegerField(
        "Requests a minute under /v1",
        null=True,
        blank=True,
        help_text="With all their keys together. Empty: the site's; 0: no limit.",
    )
    requests_a_day = models.PositiveIntegerField(
        "Requests a day under /v1",
        null=True,
        blank=True,
        help_text="Of the last 24 hours, with all their keys together. Empty: the site's; 0: no limit.",
    )
    storage_mb = models.PositiveIntegerField(
        "Storage in MB",
        null=True,
        blank=True,
        help_text="Of all their files and workspaces. Empty: the site's; 0: no limit.",
    )

    def __str__(self) -> str:
        return f"Quota of {self.user}"


class Scope(models.TextChoices):
    """What an API key may do. Every scope includes reading, except for the two that are for OpenAI clients."""

    READ = "read", "Read"
    CHAT = "chat", "Start and stop turns"
    DECIDE = "decide", "Decide approvals"
    WORKFLOWS = "workflows", "Start workflows"
    CONTEXT = "context", "Talk to the agent with any OpenAI client"
    PASSTHROUGH = "passthrough", "Use the site\u2019s models with any OpenAI client"


class ApiKey(AbstractAuthToken):  # type: ignore[misc]
    """An API key. Only its hash is stored; the key itself is shown once, when it is created."""

    digest = models.CharField(max_length=CONSTANTS.DIGEST_LENGTH, unique=True)  # not the primary key: pages show that
    name = models.CharField(max_length=100, help_text="What it is for.")
    scopes = models.JSONField(default=list, help_text="Of read, chat, decide, workflows, context and passthrough.")
    requests_a_minute = models.PositiveIntegerField(null=True, blank=True, help_text="Under /v1. Empty: no limit.")
    requests_a_day = models.PositiveIntegerField(null=True, blank=True, help_text="The same, in the last 24 hours.")
    tokens_a_day = models.PositiveBigIntegerField(null=True, blank=True, help_text="Likewise, input and output.")
    only_models = models.JSONField(default=list, help_text="The models that it may use under /v1. Empty: all.")
    used_at = models.DateTimeField(null=True, blank=True, help_text="When it was last used, to the minute.")

    objects: ClassVar[AuthTokenManager] = AuthTokenManager()

    class Meta:
        ordering = ["-created"]
        verbose_name = "API key"

    def __str__(self) -> str:
        return self.name or self.token_key
