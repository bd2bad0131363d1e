"""Grants: what people allowed to run without being asked again."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from agents.engine.grants import grant as engine
from agents.engine.grants.conditions import Condition
from conversations.models.conversation import Conversation, OwnedQuerySet
from conversations.models.prompt import Prompt


class GrantQuerySet(OwnedQuerySet["Grant"]):
    """Grants."""

    owner, kind = "user", ""

    def standing(self) -> GrantQuerySet:
        """Return those that can still let a call run: not revoked, not over, not used up."""
        left = Q(uses=None) | Q(used__lt=F("uses"))
        return self.filter(left, Q(until=None) | Q(until__gt=timezone.now()), revoked_at=None)


class Grant(models.Model):
    """A person's grant: see `agents.engine.grants.grant.Grant`, which has the same fields and decides what it covers.

    It holds for calls in that person's own conversations. Only its last fields change. It goes with the conversation in
    which it was given, because it has words from there.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="grants")
    tool = models.CharField(max_length=100)
    schema = models.CharField(max_length=64)
    scope = models.CharField(max_length=16, choices=[(scope.value, scope.value) for scope in engine.Scope])
    digest = models.CharField(max_length=64, blank=True)
    conditions = models.JSONField(default=list)
    warnings = models.JSONField(default=list)
    callers = models.JSONField(default=list)
    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    until = models.DateTimeField(null=True, blank=True)
    uses = models.PositiveIntegerField(null=True, blank=True)
    unattended = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=engine.VERSION)

    prompt = models.ForeignKey(Prompt, on_delete=models.CASCADE, related_name="+", help_text="Where it was given.")
    path = models.CharField(max_length=200)
    given_at = models.DateTimeField(auto_now_add=True)
    used = models.PositiveIntegerField(default=0)
    used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    objects = GrantQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        indexes = [models.Index(fields=["user", "tool"], name="grant_standing", condition=Q(revoked_at=None))]

    def __str__(self) -> str:
        return f"Grant {self.pk}"

    @property
    def actor(self) -> str:
        """The actor of its decisions, and the name by which a record uses it up."""
        return f"grant:{self.pk}"

    @property
    def said(self) -> engine.Grant:
        """What it says."""
        return engine.Grant(
            tool=self.tool,
            schema=self.schema,
            scope=engine.Scope(self.scope),
            digest=self.digest,
            conditions=tuple(Condition.of(each) for each in self.conditions),
            warnings=tuple(self.warnings),
            callers=tuple(self.callers),
            conversation=self.conversation_id,
            until=self.until,
            uses=self.uses,
            unattended=self.unattended,
            version=self.version,
        )
