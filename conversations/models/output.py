"""Outputs: entries of the timeline, folded from steps and stored with them."""

from __future__ import annotations

import json
from typing import Any

from django.db import models
from django.db.models import F, Q

from agents.engine.outputs.kinds import Output as Entry
from agents.engine.outputs.registry import load_output
from agents.engine.paths import HUMAN
from conversations.models.conversation import Conversation
from conversations.models.prompt import OfPromptsQuerySet, Prompt


class GateState(models.TextChoices):
    """The state of the latest gate of a call."""

    PENDING = "pending", "Waiting"
    APPROVED = "approved", "Approved"
    REJECTED = "rejected", "Rejected"
    ANSWERED = "answered", "Answered"
    EXPIRED = "expired", "Expired"
    CANCELLED = "cancelled", "Cancelled"


UNTOLD = ~Q(gate=F("told_gate"), gate_path=F("told_path"))
"""Its gate was opened or decided, and webhooks were not looked at since."""


class OutputQuerySet(OfPromptsQuerySet["Output"]):
    """Outputs. Approvals are outputs with a pending gate, not a second list (R25)."""

    def gates(self) -> OutputQuerySet:
        """Return the outputs that a person was asked about."""
        return self.exclude(gate="")

    def pending(self) -> OutputQuerySet:
        """Return the outputs whose gate is waiting for a person."""
        return self.filter(gate=GateState.PENDING)


class Output(models.Model):
    """An output after its last step. `data` holds all of it; the other columns exist for queries."""

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="outputs", db_index=False)
    prompt = models.ForeignKey(Prompt, on_delete=models.PROTECT, related_name="outputs")
    position = models.BigIntegerField(help_text="The seq of the step that opened it.")
    path = models.CharField(max_length=200, blank=True)
    parent = models.CharField(max_length=200, blank=True)
    type = models.CharField(max_length=64)
    data = models.TextField(help_text="The output as canonical JSON.")
    result = models.CharField(max_length=16, blank=True, help_text="Of a tool entry: where its call stands.")
    tool = models.CharField(max_length=100, blank=True)

    gate = models.CharField(max_length=16, blank=True, choices=GateState)
    gate_path = models.CharField(max_length=200, blank=True)
    ask = models.CharField(max_length=16, blank=True)
    reason = models.TextField(blank=True, help_text="Why a person is asked; of a policy's question, its words.")
    risk = models.CharField(max_length=16, blank=True)
    digest = models.CharField(max_length=64, blank=True)
    who = models.CharField(max_length=16, blank=True, help_text="`another`: whoever asked for the turn may not decide.")
    edited_by = models.CharField(
        max_length=150,
        blank=True,
        help_text="Where four eyes are needed: whose edit it asks about. They may not approve.",
    )
    asked_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.CharField(max_length=150, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    via = models.CharField(max_length=16, blank=True)
    note = models.TextField(blank=True)

    told_gate = models.CharField(
        max_length=16, db_default="", editable=False, help_text="The state of the gate that webhooks were told of last."
    )
    told_path = models.CharField(max_length=200, db_default="", editable=False, help_text="The path of that gate.")

    objects = OutputQuerySet.as_manager()

    class Meta:
        ordering = ["prompt_id", "position"]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "prompt", "position"], name="one_output_per_position")
        ]
        indexes = [
            models.Index(fields=["asked_at"], name="output_pending", condition=Q(gate="pending")),
            models.Index(fields=["gate", "asked_at"], name="output_gates", condition=~Q(gate="")),
            # The inbox: what waits, by when it expires, and what was decided, the newest first.
            models.Index(fields=["expires_at", "id"], name="output_expiring", condition=Q(gate="pending")),
            models.Index(fields=["-decided_at", "-id"], name="output_decided", condition=Q(decided_at__isnull=False)),
            # Earlier calls of a tool that were decided, the newest first: all of them, and those of a conversation.
            models.Index(
                fields=["tool", "-decided_at", "-id"], name="output_earlier", condition=Q(decided_at__isnull=False)
            ),
            models.Index(
                fields=["conversation", "tool", "-decided_at", "-id"],
                name="output_earlier_here",
                condition=Q(decided_at__isnull=False),
            ),
            # What webhooks are to be told of: a gate is in it for seconds.
            models.Index(fields=["id"], name="output_untold", condition=UNTOLD),
            # All that is counted of tools, so that counting reads no table.
            models.Index(fields=["tool", "result", "gate", "prompt"], name="output_tools", condition=~Q(tool="")),
        ]
        permissions = [
            ("decide_approval", "Can decide approvals of others"),
            ("decide_own_approval", "Can decide own approvals"),
            ("told_of_unattended", "Is told of turns of triggers that wait"),
        ]

    def __str__(self) -> str:
        return f"{self.tool or self.type} at {self.path or '.'}"

    @property
    def content(self) -> dict[str, Any]:
        """The JSON in `data`, parsed."""
        parsed: dict[str, Any] = json.loads(self.data)
        return parsed

    def entry(self) -> Entry:
        """Return the output as the engine's model."""
        return load_output(self.content)


class ApprovalManager(models.Manager["Approval"]):
    """The manager of approvals."""

    def get_queryset(self) -> models.QuerySet[Approval]:
        """Return the outputs that have a gate."""
        return super().get_queryset().exclude(gate="")


class Approval(Output):
    """An output with a gate, as the admin lists it. A proxy: it has no table of its own."""

    objects = ApprovalManager()  # type: ignore[assignment,misc]

    class Meta:
        proxy = True
        default_permissions = ()
        ordering = ["asked_at"]


class ToolUseManager(models.Manager["ToolUse"]):
    """The manager of calls of tools."""

    def get_queryset(self) -> models.QuerySet[ToolUse]:
        """Return the entries of calls, those of questions to people left out."""
        return super().get_queryset().exclude(tool="").exclude(tool=HUMAN)


class ToolUse(Output):
    """A call of a tool, as the admin's catalogue of tools counts it. A proxy: it has no table of its own."""

    objects = ToolUseManager()  # type: ignore[assignment,misc]

    class Meta:
        proxy = True
        verbose_name = "tool"
        default_permissions = ()
        permissions = [("view_tooluse", "Can view tools, and who used them")]
