"""Secrets of runs at rest: encrypted rows, which only this site's key opens, and which go with the end of the run.

The row's place is encrypted with the value: a row that is copied to another run opens nothing there.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from cryptography.fernet import InvalidToken

from agents.engine.ledger import canonical
from agents.engine.root import AGENT
from agents.engine.secrets import RunSecrets
from conversations.ledger.sealing import lock
from conversations.models import Conversation, Prompt, RunSecret
from conversations.models.prompt import ENDED

logger = logging.getLogger(__name__)

LABEL = b"secrets of runs"


def keep(prompt: Prompt, secrets: Mapping[str, str]) -> None:
    """Store the secrets of a new run, in the open transaction."""
    sealing = lock(LABEL)
    RunSecret.objects.bulk_create(
        RunSecret(
            conversation_id=prompt.conversation_id,
            prompt=prompt,
            field=field,
            ciphertext=sealing.encrypt(canonical([prompt.conversation_id, prompt.pk, field, value]).encode()).decode(),
        )
        for field, value in secrets.items()
    )


def read(prompt: Prompt) -> dict[str, str]:
    """Return the secrets of a run by field. Those that this site's keys do not open are left out, and logged."""
    if prompt.policy == AGENT:  # it has none, and is most of all turns
        return {}
    found, sealing = dict[str, str](), lock(LABEL)
    for row in RunSecret.objects.of(prompt):
        try:
            conversation, owner, field, value = json.loads(sealing.decrypt(row.ciphertext))
        except (InvalidToken, ValueError):
            logger.warning("a secret of a run cannot be read: SECRET_KEY is another one", extra={"prompt": prompt.pk})
            continue
        if (conversation, owner, field) == (prompt.conversation_id, prompt.pk, row.field):
            found[field] = value
    return found


def secrets_of(prompt: Prompt) -> RunSecrets:
    """Return what is to be hidden in whatever people say in this run while it lives."""
    return RunSecrets(read(prompt))


def secrets_in(conversation: Conversation) -> RunSecrets:
    """Return what is to be hidden in what people say of this conversation while runs in it live."""
    hidden = RunSecrets()
    for prompt in conversation.prompts.exclude(state__in=ENDED).exclude(policy=AGENT):
        hidden.add(read(prompt))
    return hidden
