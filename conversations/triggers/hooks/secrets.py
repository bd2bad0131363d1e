"""The secrets by which senders of webhooks prove who they are: made here, shown once, kept encrypted.

A trigger has several at a time, so that a new one can be set up at the sender before the old one is removed. Senders
sign with them, so they must be readable, and no hash would do. The trigger is encrypted with the value: a row that is
moved to another trigger opens nothing there.
"""

from __future__ import annotations

import json
import logging
import secrets

from cryptography.fernet import InvalidToken
from django.db import transaction

from agents.engine.ledger import canonical
from conversations.ledger.sealing import lock
from conversations.models import HookSecret, Proof, Trigger
from conversations.notifications.webhooks.signing import BYTES, new_secret

logger = logging.getLogger(__name__)

LABEL = b"secrets of webhooks"
MOST = 5
"""Secrets of one trigger."""


class TooManySecrets(Exception):
    """A trigger can have 5 secrets. Remove one that no sender uses any more."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


class LastSecret(Exception):
    """This is the only secret of the trigger, so it must stay. Add another one first."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def add(trigger: Trigger) -> tuple[HookSecret, str]:
    """Make a secret; return its row and its text, which nobody is shown again. Raises TooManySecrets."""
    with transaction.atomic():
        Trigger.objects.select_for_update().get(pk=trigger.pk)
        if trigger.hook_secrets.count() >= MOST:
            raise TooManySecrets
        text = new_secret() if trigger.proof == Proof.STANDARD else secrets.token_hex(BYTES)
        sealed = lock(LABEL).encrypt(canonical([trigger.pk, text]).encode()).decode()
        return HookSecret.objects.create(trigger=trigger, ciphertext=sealed), text


def first(trigger: Trigger) -> str:
    """Make the first secret of a trigger and return its text; "" if it has one already."""
    return "" if trigger.hook_secrets.exists() else add(trigger)[1]


def remove(trigger: Trigger, pk: int) -> None:
    """Remove a secret: what is signed with it is refused from now on. Raises LastSecret, HookSecret.DoesNotExist."""
    with transaction.atomic():
        Trigger.objects.select_for_update().get(pk=trigger.pk)
        found = trigger.hook_secrets.get(pk=pk)
        if trigger.hook_secrets.count() == 1:
            raise LastSecret
        found.delete()


def read(trigger: Trigger) -> list[str]:
    """Return the secrets of a trigger. Those that this site's keys do not open are left out, and logged."""
    found, sealing = list[str](), lock(LABEL)
    for row in trigger.hook_secrets.all():
        try:
            owner, text = json.loads(sealing.decrypt(row.ciphertext))
        except (InvalidToken, ValueError):
            logger.warning("a webhook's secret cannot be read: SECRET_KEY changed", extra={"trigger": trigger.pk})
            continue
        if owner == trigger.pk:
            found.append(text)
    return found
