"""The composer's menu: the workflows that a line can start, each with the fields that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse

from conversations.display.schema_form import properties_of
from conversations.models import Conversation
from workflows.definition import Workflow
from workflows.pages.form import secret_fields


@dataclass(frozen=True)
class MenuRow:
    """A workflow in the menu, and the address of its form."""

    workflow: Workflow
    form: str

    @property
    def fields(self) -> list[tuple[str, bool]]:
        """The fields that can be given in a line, each with whether it is required."""
        schema, secret = self.workflow.schema, secret_fields(self.workflow)
        required = schema.get("required", [])
        names = [name for name in properties_of(schema) if name not in secret]
        return [(name, isinstance(required, list) and name in required) for name in names]


def menu_rows(workflows: Sequence[Workflow], chat: Conversation | None) -> list[MenuRow]:
    """Return the menu, for a chat in which the runs would be; None: each has a conversation of its own."""
    if chat is None:
        return [MenuRow(each, each.page) for each in workflows]
    return [MenuRow(each, reverse("workflow-in", args=[each.name, chat.pk])) for each in workflows]
