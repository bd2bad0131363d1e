"""Steps: the rows of the ledger. They are appended and never changed, and only the journal writes them."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from django.db import models
from django.db.models import CharField, Func, Q, QuerySet

from conversations.models.conversation import Conversation
from conversations.models.prompt import OfPromptsQuerySet, Prompt


class AppendOnly(Exception):
    """The ledger is append-only: only `conversations.ledger.journal` adds steps, and no step is changed or deleted."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def _refuse(*_: Any, **__: Any) -> NoReturn:
    """Raise AppendOnly."""
    raise AppendOnly


class Found(Func):
    """SQL for a part of a text that is found by what stands around it."""

    output_field = CharField()

    @classmethod
    def sql(cls, column: str, vendor: str) -> str:
        """Return the SQL for this column, for a query by hand: on SQLite, `strpos` is called `instr`."""
        template = cls.template if vendor == "postgresql" else cls.template.replace("strpos", "instr")
        return template % {"expressions": column}

    def as_sqlite(self, compiler: Any, connection: Any, **more: Any) -> Any:
        """Compile for SQLite."""
        return self.as_sql(compiler, connection, template=self.sql("%(expressions)s", connection.vendor), **more)


class Told(Found):
    """SQL for the snapshot that a round's `action_start` names. Without parameters, so that the index on it is used."""

    template = """substr(%(expressions)s, strpos(%(expressions)s, '"snapshot":"') + 12, 64)"""


class OfPlugin(Found):
    """SQL for the beginning of a `state` step: it names the plugin, and is the same in all steps of that plugin."""

    template = """substr(%(expressions)s, 1, strpos(%(expressions)s, '","value":'))"""


class StepQuerySet(OfPromptsQuerySet["Step"]):
    """Steps, for reading only."""

    update = delete = bulk_create = bulk_update = _refuse


class Step(models.Model):
    """One thing that happened. `prompt` and `path` name its call; what `content` holds depends on `type`."""

    conversation = models.ForeignKey(Conversation, on_delete=models.PROTECT, related_name="steps", db_index=False)
    seq = models.BigIntegerField()
    prompt = models.ForeignKey(Prompt, on_delete=models.PROTECT, related_name="steps", db_index=False)
    path = models.CharField(max_length=200, blank=True)
    actor = models.CharField(max_length=150)
    type = models.CharField(max_length=64)
    attempt = models.PositiveIntegerField(null=True, help_text="Of an action_start.")
    payload = models.TextField(help_text="Canonical JSON, hashed as stored.")
    time = models.DateTimeField()
    digest = models.CharField(max_length=64, help_text="Chains it to the step before.")

    objects = StepQuerySet.as_manager()

    class Meta:
        ordering = ["conversation_id", "seq"]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "seq"], name="one_step_per_seq"),
            models.UniqueConstraint(
                fields=["conversation", "prompt", "path"], name="one_call", condition=Q(type="action_call")
            ),
            models.UniqueConstraint(
                fields=["conversation", "prompt", "path"], name="one_result", condition=Q(type="action_result")
            ),
            models.UniqueConstraint(
                fields=["conversation", "prompt", "path", "attempt"],
                name="one_start_per_attempt",
                condition=Q(type="action_start"),
            ),
        ]
        indexes = [
            models.Index(fields=["prompt", "seq"], name="step_by_prompt"),
            models.Index("conversation", OfPlugin("payload"), "seq", name="step_state", condition=Q(type="state")),
            models.Index(Told("payload"), name="step_told", condition=Q(type="action_start")),
            # Queried once a second by each drain, for all turns that it holds.
            models.Index(fields=["conversation", "prompt"], name="step_cancel", condition=Q(type="cancel")),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.path or '.'} {self.type}"

    save = delete = _refuse

    @property
    def content(self) -> dict[str, Any]:
        """The payload, parsed."""
        parsed: dict[str, Any] = json.loads(self.payload)
        return parsed


def snapshots_of(conversation: Conversation) -> QuerySet[Step, str]:
    """Return the names of the snapshots that the conversation's rounds name, some of them repeatedly."""
    starts = Step.objects.filter(conversation=conversation, type="action_start", payload__contains='"snapshot":"')
    return starts.values_list(Told("payload"), flat=True)
