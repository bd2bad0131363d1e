"""System prompts, their versions, and which agent has which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models, transaction
from django.db.models import Q

if TYPE_CHECKING:
    from django.contrib.auth.models import User


class ChangedMeanwhile(Exception):
    """Somebody else saved another text of a system prompt since it was opened. `latest` is their version."""

    def __init__(self, latest: SystemPromptVersion) -> None:
        super().__init__(f"Version {latest.number} was saved in the meantime.")
        self.latest = latest


class SystemPrompt(models.Model):
    """A system prompt: the text that tells an agent what it is. The text is that of its latest version."""

    name = models.CharField(max_length=100, unique=True)
    is_default = models.BooleanField(default=False, help_text="For conversations that name none.")
    retired = models.BooleanField(
        default=False,
        help_text="Not offered any more. Conversations and agents that have it keep it.",
    )
    used = models.BooleanField(
        default=False, editable=False, help_text="A turn has run with it, so it is never deleted."
    )

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["is_default"], condition=Q(is_default=True), name="one_default_prompt"),
            models.CheckConstraint(condition=~Q(is_default=True, retired=True), name="default_prompt_is_not_retired"),
        ]

    def __str__(self) -> str:
        return self.name

    @classmethod
    def create(cls, name: str, text: str, by: User | None = None, **fields: Any) -> SystemPrompt:
        """Create a system prompt with this text as its first version."""
        with transaction.atomic():
            created = cls.objects.create(name=name, **fields)
            created.write(text, by)
        return created

    def latest(self) -> SystemPromptVersion:
        """Return the latest version."""
        return self.versions.latest("number")

    def write(self, text: str, by: User | None, opened: int | None = None) -> SystemPromptVersion | None:
        """Make this text the next version and return it; None if it is the text of the latest version.

        `opened`: the number of the version that was changed. Raises ChangedMeanwhile if there is a later one.
        """
        with transaction.atomic():
            SystemPrompt.objects.select_for_update().get(pk=self.pk)
            last = self.versions.order_by("number").last()
            if last and opened is not None and opened != last.number:
                raise ChangedMeanwhile(last)
            if last and last.text == text:
                return None
            number = last.number + 1 if last else 1
            return self.versions.create(number=number, text=text, changed_by=by)

    def hold(self) -> bool:
        """Keep it from being deleted until the transaction ends. Returns False if it was deleted in the meantime."""
        return SystemPrompt.objects.select_for_update(no_key=True).filter(pk=self.pk).first() is not None

    def mark_used(self) -> bool:
        """Record that a turn runs with it. Returns False if it was deleted in the meantime."""
        return self.used or SystemPrompt.objects.filter(pk=self.pk).update(used=True) == 1


class SystemPromptVersion(models.Model):
    """One text of a system prompt, and who wrote it. Versions are appended and never changed: the database refuses."""

    prompt = models.ForeignKey(SystemPrompt, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField(help_text="From 1, within its system prompt.")
    text = models.TextField()
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+", help_text="Empty: no person."
    )
    changed_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["prompt", "number"], name="one_version_a_number")]

    def __str__(self) -> str:
        return f"Version {self.number} of {self.prompt}"


class AgentPrompt(models.Model):
    """The system prompt that is chosen for an agent: a policy that is one."""

    policy = models.CharField(
        "Agent",
        max_length=100,
        unique=True,
        error_messages={"unique": "Another system prompt is chosen for this agent. Remove it there first."},
    )
    prompt = models.ForeignKey(SystemPrompt, on_delete=models.CASCADE, related_name="agents")

    class Meta:
        ordering = ["policy"]

    def __str__(self) -> str:
        return self.policy
