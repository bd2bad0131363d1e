"""Per-user models besides Django's user: settings, quota, notices sent by e-mail, and API keys."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models
from knox.models import AbstractAuthToken, AuthTokenManager
from knox.settings import CONSTANTS

from conversations.models.prompt import Prompt


class Account(models.Model):
    """A user's settings. The row is created when it is first needed."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="account")
    mail = models.BooleanField(default=True, help_text="Send an e-mail when a turn waits and nobody looks.")
    looked_at = models.FloatField(default=0, help_text="When a page of theirs was last in view (database's clock).")

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


class Notice(models.Model):
    """A record that a user was e-mailed about one pause of a turn. One row per pause, so nobody is e-mailed twice."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    prompt = models.ForeignKey(Prompt, on_delete=models.CASCADE, related_name="notices")
    seq = models.BigIntegerField(help_text="Of the step that paused the turn.")
    sent_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "prompt", "seq"], name="told_once")]

    def __str__(self) -> str:
        return f"Notice of prompt {self.prompt_id} to user {self.user_id}"


class Scope(models.TextChoices):
    """What an API key may do. Every scope includes reading, except for `passthrough`, which is only for /v1."""

    READ = "read", "Read"
    CHAT = "chat", "Start and stop turns"
    DECIDE = "decide", "Decide approvals"
    WORKFLOWS = "workflows", "Start workflows"
    PASSTHROUGH = "passthrough", "Use the site\u2019s models with any OpenAI client"


class ApiKey(AbstractAuthToken):  # type: ignore[misc]
    """An API key. Only its hash is stored; the key itself is shown once, when it is created."""

    digest = models.CharField(max_length=CONSTANTS.DIGEST_LENGTH, unique=True)  # not the primary key: pages show that
    name = models.CharField(max_length=100, help_text="What it is for.")
    scopes = models.JSONField(default=list, help_text="Of read, chat, decide, workflows and passthrough.")
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
