"""Secrets of runs at rest: encrypted rows, which only this site's key opens, and which go with the end of the run.

The keys are derived from SECRET_KEY and SECRET_KEY_FALLBACKS by HKDF (RFC 5869). That is made for keys that are random
already, as these are, so no slow derivation for passwords is needed; and with a label of its own, no key of another
purpose, such as the signature of a session, tells anything of this one. Fernet encrypts and authenticates. The row's
place is encrypted with the value: a row that is copied to another run opens nothing there.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from agents.engine.ledger import canonical
from agents.engine.root import AGENT
from agents.engine.secrets import RunSecrets
from conversations.models import Conversation, Prompt, RunSecret
from conversations.models.prompt import ENDED

logger = logging.getLogger(__name__)

SALT, LABEL = b"agentsite.conversations", b"secrets of runs"
"""What sets these keys apart from everything else that is derived from SECRET_KEY."""


def keep(prompt: Prompt, secrets: Mapping[str, str]) -> None:
    """Store the secrets of a new run, in the open transaction."""
    lock = _lock()
    RunSecret.objects.bulk_create(
        RunSecret(
            conversation_id=prompt.conversation_id,
            prompt=prompt,
            field=field,
            ciphertext=lock.encrypt(canonical([prompt.conversation_id, prompt.pk, field, value]).encode()).decode(),
        )
        for field, value in secrets.items()
    )


def read(prompt: Prompt) -> dict[str, str]:
    """Return the secrets of a run by field. Those that this site's keys do not open are left out, and logged."""
    if prompt.policy == AGENT:  # it has none, and is most of all turns
        return {}
    found, lock = dict[str, str](), _lock()
    for row in RunSecret.objects.of(prompt):
        try:
            conversation, owner, field, value = json.loads(lock.decrypt(row.ciphertext))
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


def _lock() -> MultiFernet:
    return MultiFernet([Fernet(_derived(key)) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


def _derived(key: str | bytes) -> bytes:
    secret = key if isinstance(key, bytes) else key.encode()
    return base64.urlsafe_b64encode(HKDF(SHA256(), length=32, salt=SALT, info=LABEL).derive(secret))
