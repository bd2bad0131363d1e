"""API keys: creating them, and finding them by the `Authorization` header."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from functools import partial

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from knox.crypto import hash_token

from agents.engine.ledger import valid_text
from conversations.database.threads import write
from conversations.models import ApiKey, Scope

PREFIX = "agk_"
"""The prefix of every key, so that people and secret scanners recognise one. 256 random bits follow."""
SCHEME = "bearer"
KEYS_MOST = 50
"""Unexpired keys that one person may have."""
USED_AT_PRECISION = timedelta(minutes=1)
"""The precision of `used_at`: a busy program must not cause a write with every request."""


def make_key(user: User, name: str, scopes: Iterable[str], days: int | None = None) -> tuple[ApiKey, str]:
    """Create a key; return it and its text, which cannot be shown again. With `days` None, it never expires.

    Every scope includes reading. Raises ValueError for an empty name, an unknown scope or days out of range, and if the
    person already has KEYS_MOST keys or was deactivated.
    """
    name = valid_text(name).strip()[:100]
    if not name:
        raise ValueError("Give the key a name that says what it is for.")
    wanted = {Scope.READ.value, *scopes}
    if unknown := wanted - set(Scope.values):
        raise ValueError(f"There is no scope {min(unknown)!r}. The scopes are: {', '.join(Scope.values)}.")
    if days is not None and not 1 <= days <= 36_500:
        raise ValueError("A key can last 1 to 36,500 days. Leave the days out for a key that does not expire.")
    with transaction.atomic():
        # Under the lock, the second of two simultaneous requests counts the first, and none succeeds after an erasure.
        if not User.objects.select_for_update().get(pk=user.pk).is_active:
            raise ValueError("This account was deactivated.")
        if _unexpired().filter(user=user).count() >= KEYS_MOST:
            raise ValueError(f"You already have {KEYS_MOST} keys. Revoke one that you no longer need first.")
        made: tuple[ApiKey, str] = ApiKey.objects.create(
            user=user,
            name=name,
            scopes=[scope for scope in Scope.values if scope in wanted],
            expiry=None if days is None else timedelta(days=days),
            prefix=PREFIX,
        )
    return made


def key_from_header(header: str) -> ApiKey | None:
    """Return the key in an `Authorization` header, with its user; None if there is none, or it is expired or revoked.

    Also None if its user was deactivated. The key is read from the database each time, so revoking works at once.
    """
    scheme, _, text = header.strip().partition(" ")
    text = text.strip()
    if scheme.lower() != SCHEME or not text.isascii():
        return None
    # The database compares hashes of keys, so the time that it takes tells nothing about the keys themselves.
    key = _unexpired().filter(digest=hash_token(text), user__is_active=True).select_related("user").first()
    if key and (key.used_at is None or key.used_at < timezone.now() - USED_AT_PRECISION):
        # Nobody waits for this write. Inside a transaction, the other thread would wait for this one.
        transaction.on_commit(partial(write.run_later, _note_use, key.pk))
    return key


def _unexpired() -> QuerySet[ApiKey]:
    found: QuerySet[ApiKey] = ApiKey.objects.filter(Q(expiry=None) | Q(expiry__gt=timezone.now()))
    return found


def _note_use(pk: int) -> None:
    now = timezone.now()
    ApiKey.objects.filter(Q(used_at=None) | Q(used_at__lt=now - USED_AT_PRECISION), pk=pk).update(used_at=now)


def allows(key: ApiKey, scope: Scope) -> bool:
    """Whether this key has this scope. Every key may read."""
    return scope == Scope.READ or scope in key.scopes
