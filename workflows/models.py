"""The settings of workflows that administrators change: whether each may be run, and by whom."""

from __future__ import annotations

from django.contrib.auth.models import Group
from django.db import models


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
