"""Payloads: what came with a webhook, as the file of an agent's turn or as the input of a workflow."""

from __future__ import annotations

from django.core.files.uploadedfile import SimpleUploadedFile

from agents.engine.ledger import JSON
from conversations.files.uploads import Upload
from conversations.models import Payload, Trigger
from conversations.prompts.startable import Startable
from conversations.triggers.inputs import checked_input
from conversations.triggers.mapping import input_from

_TEXTS = ("text/", "application/x-www-form-urlencoded", "application/xml", "application/yaml")


def payload_file(payload: Payload) -> Upload:
    """Return the payload as a file that is sent with a turn: `payload.json`, `.txt` or `.bin` by its media type."""
    kind = payload.media_type
    suffix = "json" if kind.endswith(("/json", "+json")) else "txt" if kind.startswith(_TEXTS) else "bin"
    return Upload.of(SimpleUploadedFile(f"payload.{suffix}", bytes(payload.content), kind))


def input_of(trigger: Trigger, found: Startable, payload: Payload | None) -> dict[str, JSON]:
    """Return the input of a run that a trigger starts. Raises InvalidInput.

    That is its own or, if webhooks fire it, what its mapping takes from the payload.
    """
    if not trigger.hook:
        own: dict[str, JSON] = trigger.input
        return own
    return checked_input(found, input_from(trigger.mapping, payload), trigger.owner)
