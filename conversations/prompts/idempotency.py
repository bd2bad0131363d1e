"""Idempotency keys: a request that is sent again with the same key starts nothing twice."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.utils.crypto import salted_hmac

from agents.engine.ledger import JSON, canonical
from conversations.models import Prompt

KEY_MOST = 200
"""Maximum length of a key, in characters."""


class KeyReused(Exception):
    """This key was already used for a different request. Send a new key with each new request."""

    def __init__(self, prompt: int) -> None:
        super().__init__(self.__doc__)
        self.prompt = prompt


def set_key(prompt: Prompt, key: str, sent: Sequence[JSON]) -> None:
    """Give a new prompt its sender's key, "" for none, and the digest of what was sent.

    The digest is keyed with SECRET_KEY: what was sent may have a short secret in it, which a plain digest would confirm
    to whoever tries all that are likely. Once that key is another one, the same request counts as a different one.
    Raises ValueError for a key without a sender, or one that is too long.
    """
    if key and prompt.asked_by is None:
        raise ValueError("only a request made by a person can have a key")
    if len(key) > KEY_MOST:
        raise ValueError(f"the key has {len(key)} characters; the maximum is {KEY_MOST}")
    prompt.request_key, prompt.request_digest = key, _digest(list(sent)) if key else ""


def _digest(sent: list[JSON]) -> str:
    return salted_hmac("conversations.prompts.idempotency", canonical(sent), algorithm="sha256").hexdigest()


def started_before(prompt: Prompt) -> Prompt | None:
    """Return the prompt that the same request started before. Raises KeyReused if the key was another request's."""
    if not prompt.request_key:
        return None
    found = Prompt.objects.filter(asked_by=prompt.asked_by, request_key=prompt.request_key).first()
    if found and found.request_digest != prompt.request_digest:
        raise KeyReused(found.pk)
    return found


def is_used(by: User, key: str) -> bool:
    """Whether a request of this person has started something with this key."""
    return bool(key) and Prompt.objects.filter(asked_by=by, request_key=key).exists()
