"""The triggers that an agent makes, lists and deletes for the owner of its turn: the engine's service."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.contrib.auth.models import User

from agents.engine.errors import ToolError
from agents.engine.interfaces.services import TriggerInWords
from agents.plugins.triggers.schedule import Schedule
from conversations.database.threads import Write
from conversations.models import Conversation, Overlap, Trigger
from conversations.prompts.start import Deactivated
from conversations.prompts.startable import InvalidInput
from conversations.triggers import managing
from conversations.triggers.managing import NewTrigger, TooMany

LISTED = 50
"""Triggers that an agent is told of at most."""


class TriggersOfTurn:
    """The triggers of `owner`, for a turn in `conversation`. `write` runs a function in the thread of the database."""

    def __init__(self, owner: int, conversation: int, write: Write) -> None:
        self.least_seconds: float = settings.AGENTSITE_TRIGGER_LEAST_SECONDS
        self._owner, self._conversation, self._write = owner, conversation, write

    async def create(self, schedule: Schedule, text: str, key: str) -> TriggerInWords:
        """Make a trigger. Raises ToolError with the reason if there may be none like it."""
        return await self._write(self._create, schedule, text, key)

    def _create(self, schedule: Schedule, text: str, key: str) -> TriggerInWords:
        owner = User.objects.get(pk=self._owner)
        chat = Conversation.objects.get(pk=self._conversation)
        new = NewTrigger(schedule, text, overlap=Overlap.SKIP)
        try:
            made = managing.create(
                owner, new, key=f"call:{key}", asked_in=chat, conversation=None if schedule.repeats else chat
            )
        except InvalidInput as error:
            raise ToolError(" ".join(why for each in error.fields.values() for why in each), "invalid_input") from error
        except (TooMany, Deactivated) as error:
            raise ToolError(str(error), "refused") from error
        return _in_words(made)

    async def list(self) -> Sequence[TriggerInWords]:
        """Return the owner's triggers, the newest first."""
        return await self._write(self._list)

    def _list(self) -> Sequence[TriggerInWords]:
        return [_in_words(each) for each in Trigger.objects.filter(owner=self._owner)[:LISTED]]

    async def delete(self, id: int) -> TriggerInWords:
        """Delete one of the owner's triggers. Raises ToolError if they have none of this number."""
        return await self._write(self._delete, id)

    def _delete(self, id: int) -> TriggerInWords:
        found = Trigger.objects.filter(owner=self._owner, pk=id).first()
        if found is None:
            raise ToolError(f"There is no trigger {id}. Nothing was deleted.", "not_found")
        gone = _in_words(found)
        managing.delete(found)
        return gone


def _in_words(trigger: Trigger) -> TriggerInWords:
    return TriggerInWords(trigger.pk, trigger.text or trigger.name, trigger.when, trigger.state)
