"""API keys: made once, found by the header that carries them, and known to people by a name that is no secret."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from hmac import compare_digest

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from knox.crypto import hash_token
from knox.settings import CONSTANTS

from agents.engine.ledger import valid_text
from conversations.database.threads import write
from conversations.models import ApiKey, Scope

PREFIX = "agk_"
"""How each key begins, so that people and secret scanners know one when they see it. 256 random bits follow."""
SCHEME = "bearer"
KEYS_MOST = 50
"""Of one person, that work; those that have expired do not count."""
USED_AT_PRECISION = timedelta(minutes=1)
"""How exactly the last use is kept: a busy program must not write a row with each request."""


def make_key(user: User, name: str, scopes: Iterable[str], days: int | None = None) -> tuple[ApiKey, str]:
    """A new key and its text, which nothing can show again. `days` None: it never expires.

    Reading is part of each scope. Raises ValueError for no name, an unknown scope, days that are not positive, where
    the person has KEYS_MOST already, or was deactivated.
    """
    name = valid_text(name).strip()[:100]
    if not name:
        raise ValueError("Give the key a name: what it is for.")
    wanted = {Scope.READ.value, *scopes}
    if unknown := wanted - set(Scope.values):
        raise ValueError(f"There is no scope {min(unknown)!r}. There are: {', '.join(Scope.values)}.")
    if days is not None and not 1 <= days <= 36_500:
        raise ValueError("A key lasts from 1 to 36,500 days; leave the days out for one that does not expire.")
    with transaction.atomic():
        # Under the lock: of two requests at once the second counts the first, and none comes after an erasure.
        if not User.objects.select_for_update().get(pk=user.pk).is_active:
            raise ValueError("This account was deactivated.")
        if _unexpired().filter(user=user).count() >= KEYS_MOST:
            raise ValueError(f"There are {KEYS_MOST} keys already: revoke one that is not needed first.")
        made: tuple[ApiKey, str] = ApiKey.objects.create(
            user=user,
            name=name,
            scopes=[scope for scope in Scope.values if scope in wanted],
            expiry=None if days is None else timedelta(days=days),
            prefix=PREFIX,
        )
    return made


def key_from_header(header: str) -> ApiKey | None:
    """The key that an `Authorization` header carries, with its user; None where it is no key, expired or revoked.

    Nor is a key good whose user was deactivated. It is read from the database each time: revoking works at once.
    """
    scheme, _, text = header.strip().partition(" ")
    text = text.strip()
    if scheme.lower() != SCHEME or not text.isascii():
        return None
    candidates = _unexpired().filter(token_key=text[: CONSTANTS.TOKEN_KEY_LENGTH], user__is_active=True)
    candidates = candidates.select_related("user")
    digest = hash_token(text)
    key: ApiKey
    for key in candidates:
        if compare_digest(key.digest, digest):
            if key.used_at is None or key.used_at < timezone.now() - USED_AT_PRECISION:
                # Nobody waits for it. Inside of a transaction that other thread would wait for this one.
                transaction.on_commit(partial(write.run_later, _note_use, key.pk))
            return key
    return None


def _unexpired() -> QuerySet[ApiKey]:
    found: QuerySet[ApiKey] = ApiKey.objects.filter(Q(expiry=None) | Q(expiry__gt=timezone.now()))
    return found


def _note_use(pk: str) -> None:
    now = timezone.now()
    ApiKey.objects.filter(Q(used_at=None) | Q(used_at__lt=now - USED_AT_PRECISION), pk=pk).update(used_at=now)


def allows(key: ApiKey, scope: Scope) -> bool:
    """Whether the key may be used for this. Every key reads."""
    return scope == Scope.READ or scope in key.scopes


def public_id(key: ApiKey) -> str:
    """What pages call the key by in addresses and forms: neither a part of it nor its hash."""
    return hashlib.sha256(key.digest.encode()).hexdigest()[:16]


def by_public_id(keys: QuerySet[ApiKey], wanted: str) -> ApiKey | None:
    """The one of these keys that pages call by this."""
    return next((key for key in keys if public_id(key) == wanted), None)
