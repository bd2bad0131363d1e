"""Notifications: what people are told of, which ways each of them chose, and what each was told."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from conversations.models.prompt import Prompt


class NoticeKind(models.TextChoices):
    """What a notification is about. Its words and defaults are in `conversations.notifications.kinds`."""

    WAITS = "waits"
    ENDED = "ended"
    FAILED = "failed"
    TRIGGER = "trigger"


class NoticeChoice(models.Model):
    """How a person wants to be told of one kind of thing. Without a row, the default of the kind counts."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=8, choices=NoticeKind)
    page = models.BooleanField(help_text="By the browser, while a page of the site is open.")
    mail = models.BooleanField(help_text="By e-mail.")
    hook = models.BooleanField(default=True, help_text="By their webhook, if they have one.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "kind"], name="one_choice_per_kind")]

    def __str__(self) -> str:
        return f"Choice of user {self.user_id} for {self.kind}"


class Notice(models.Model):
    """One thing that a person is told of. Of what waits, a row is written when the e-mail is sent: once per pause.

    Of everything else, a row is written when it happens: `page` and `mail` say how the person wanted to be told then.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=8, choices=NoticeKind)
    prompt = models.ForeignKey(Prompt, null=True, blank=True, on_delete=models.CASCADE, related_name="notices")
    seq = models.BigIntegerField(default=0, help_text="Of the step that paused or ended the turn.")
    title = models.CharField(max_length=200, blank=True, help_text="What it is about, where that is not a turn.")
    link = models.CharField(max_length=200, blank=True, help_text="The path of its page, likewise.")
    at = models.DateTimeField(auto_now_add=True)
    page = models.BooleanField(default=False, help_text="To be shown by the browser.")
    mail = models.BooleanField(default=False, help_text="To be sent by e-mail.")
    mailed_at = models.DateTimeField(null=True, blank=True, help_text="When it was.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "prompt", "seq"], name="told_once")]
        indexes = [
            models.Index(fields=["user", "-id"], name="notice_page", condition=Q(page=True)),
            models.Index(fields=["user", "id"], name="notice_due", condition=Q(mail=True, mailed_at=None)),
        ]

    def __str__(self) -> str:
        return f"Notice {self.kind} to user {self.user_id}"
