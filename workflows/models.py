"""The settings of workflows that administrators change, and the stars that people give to workflows and runs."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models

from conversations.models import Prompt


class WorkflowSetting(models.Model):
    """What an administrator decided about a workflow. Without such a row, what its author declared holds."""

    name = models.CharField(max_length=80, unique=True, help_text="The name of the workflow, such as project.create.")
    enabled = models.BooleanField(default=True, help_text="Whether it can be run at all.")
    permission = models.CharField(
        max_length=200,
        blank=True,
        help_text="The permission that it takes to run it, such as shop.add_order. Empty: as its author wants.",
    )
    groups = models.ManyToManyField(
        Group,
        blank=True,
        help_text="Only people in one of these groups may run it. Empty: people in any group, or none.",
    )
    list_to_others = models.BooleanField(
        default=False, help_text="Whether people who may not run it see it in the list, with the reason."
    )

    class Meta:
        ordering = ["name"]
        verbose_name = "workflow setting"

    def __str__(self) -> str:
        return self.name


class WorkflowStar(models.Model):
    """A workflow that a person starred. It goes with the person; a workflow that is not installed may come back."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=80)

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="one_star_per_workflow")]

    def __str__(self) -> str:
        return self.name


class RunStar(models.Model):
    """A run that a person starred. It goes with the run, and with the person."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    prompt = models.ForeignKey(Prompt, on_delete=models.CASCADE, related_name="stars")

    class Meta:
        default_permissions = ()
        constraints = [models.UniqueConstraint(fields=["user", "prompt"], name="one_star_per_run")]

    def __str__(self) -> str:
        return f"Run {self.prompt_id}"
