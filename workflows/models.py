"""The settings of workflows that administrators change, and what people keep: stars, and batches."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.urls import reverse

from conversations.models import Origin, Prompt


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


class Batch(models.Model):
    """Runs of a workflow that a person started together, one for each line of a table."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    workflow = models.CharField(max_length=80, help_text="The name of the workflow.")
    origin = models.CharField(max_length=16, choices=Origin, default=Origin.WORKFLOW, help_text="How it was started.")
    created_at = models.DateTimeField(auto_now_add=True)
    stopped_at = models.DateTimeField(null=True, blank=True, help_text="When the person stopped what had not started.")
    request_key = models.CharField(max_length=200, blank=True, help_text="The sender's own name for the request.")
    request_digest = models.CharField(max_length=64, blank=True, help_text="Of what was sent under that name.")

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "batches"
        constraints = [
            models.UniqueConstraint(
                fields=["user", "request_key"], condition=~models.Q(request_key=""), name="one_batch_per_request"
            )
        ]

    def __str__(self) -> str:
        return f"Batch {self.pk}"

    def get_absolute_url(self) -> str:
        """Return the address of its page."""
        return reverse("batch", args=[self.pk])

    @property
    def together(self) -> str:
        """The name by which its runs count as one turn at once, and with which their keys begin."""
        return f"batch:{self.pk}"


class BatchLine(models.Model):
    """A line of a batch. It waits until it has started, or until `why_not` says why it never will.

    `input` is there only while the line has no run: then it stands in the ledger of that run alone, so that whoever
    erases or redacts the run takes it out everywhere.
    """

    batch = models.ForeignKey(Batch, on_delete=models.CASCADE, related_name="lines")
    number = models.PositiveSmallIntegerField(help_text="Counts from 1, without the header.")
    input = models.TextField(blank=True, help_text="JSON; empty once it has started.")
    started_at = models.DateTimeField(null=True, blank=True)
    prompt = models.OneToOneField(
        Prompt, null=True, on_delete=models.SET_NULL, related_name="+", help_text="Its run, unless that was deleted."
    )
    why_not = models.TextField(blank=True, help_text="Why it was not started, in words for people.")

    class Meta:
        ordering = ["batch", "number"]
        constraints = [models.UniqueConstraint(fields=["batch", "number"], name="one_line_per_number")]
        indexes = [
            models.Index(
                fields=["batch", "number"],
                name="batch_line_waits",
                condition=models.Q(started_at__isnull=True, why_not=""),
            )
        ]

    def __str__(self) -> str:
        return f"Line {self.number} of batch {self.batch_id}"
