"""Idempotency keys: a request that is sent again with the same key starts nothing twice."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.utils.crypto import salted_hmac

from agents.engine.ledger import JSON, canonical, valid_text
from conversations.models import Prompt

KEY_MOST = 200
"""Maximum length of a key, in characters."""

OWN = "batch:"
"""Keys that begin so are the site's own, for turns that it starts together: no client may send one."""


class KeyReused(Exception):
    """This key was already used for a different request. Send a new key with each new request."""

    def __init__(self, prompt: int) -> None:
        super().__init__(self.__doc__)
        self.prompt = prompt


def key_of_form(text: str) -> str:
    """Return the key that a form sent, "" for one that is the site's own: no page has such a key."""
    return "" if text.startswith(OWN) else valid_text(text)[:KEY_MOST]


def set_key(prompt: Prompt, key: str, sent: Sequence[JSON]) -> None:
    """Give a new prompt its sender's key, "" for none, and the digest of what was sent.

    The digest is keyed with SECRET_KEY: what was sent may have a short secret in it, which a plain digest would confirm
    to whoever tries all that are likely. Once that key is another one, the same request counts as a different one.
    Raises ValueError for a key without a sender, one that is too long, and one of the site's own elsewhere.
    """
    if key and prompt.asked_by is None:
        raise ValueError("only a request made by a person can have a key")
    if len(key) > KEY_MOST:
        raise ValueError(f"the key has {len(key)} characters; the maximum is {KEY_MOST}")
    if key.startswith(OWN) and not prompt.together:
        raise ValueError(f"a key that begins with {OWN} is for turns that the site starts together")
    prompt.request_key, prompt.request_digest = key, request_digest(list(sent)) if key else ""


def request_digest(sent: list[JSON]) -> str:
    """Return the digest of what was sent with a key."""
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
