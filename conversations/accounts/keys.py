"""API keys: creating them, and finding them by the `Authorization` header."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
MODELS_MOST, MODEL_NAME_MOST = 100, 200
"""How many models can be named for a key, and how many characters each name can have."""
LIMITS_MOST = {"requests_a_minute": 1_000_000, "requests_a_day": 1_000_000_000, "tokens_a_day": 10**15}
"""The highest limits that a key can have. They fit into their columns."""
NOT_FOR_MODELS = (
    "Only a key that may use the site\u2019s models (scope passthrough) can have this."
    " Leave it out, or let the key use them."
)
USED_AT_PRECISION = timedelta(minutes=1)
"""The precision of `used_at`: a busy program must not cause a write with every request."""


class BadKey(ValueError):
    """A key that is not made, with the reason in words. `field`: the argument of make_key that is wrong."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field


def make_key(
    user: User,
    name: str,
    scopes: Iterable[str],
    days: int | None = None,
    *,
    only_models: Iterable[str] = (),
    requests_a_minute: int | None = None,
    requests_a_day: int | None = None,
    tokens_a_day: int | None = None,
) -> tuple[ApiKey, str]:
    """Create a key; return it and its text, which cannot be shown again. With `days` None, it never expires.

    `chat`, `decide` and `workflows` include `read`; `context` and `passthrough` do not. The rest is for keys with
    `passthrough`: the models that it may use under /v1, by the names that programs write (none: all), and its own
    limits there (None: none).

    Raises BadKey for an empty name, no scope or an unknown one, for days, models or limits that make no sense, and if
    the person already has KEYS_MOST keys or was deactivated.
    """
    name = valid_text(name).strip()[:100]
    if not name:
        raise BadKey("name", "Give the key a name that says what it is for.")
    wanted = _with_read(scopes)
    if days is not None and not 1 <= days <= 36_500:
        raise BadKey("days", "A key can last 1 to 36,500 days. Leave the days out for a key that does not expire.")
    models = _clean_models(only_models)
    limits = {
        "requests_a_minute": requests_a_minute,
        "requests_a_day": requests_a_day,
        "tokens_a_day": tokens_a_day,
    }
    _check_limits(limits)
    given = [field for field, value in {"only_models": models, **limits}.items() if value]
    if given and Scope.PASSTHROUGH not in wanted:
        raise BadKey(given[0], NOT_FOR_MODELS)
    with transaction.atomic():
        # Under the lock, the second of two simultaneous requests counts the first, and none succeeds after an erasure.
        if not User.objects.select_for_update().get(pk=user.pk).is_active:
            raise BadKey("name", "This account was deactivated.")
        if _unexpired().filter(user=user).count() >= KEYS_MOST:
            raise BadKey("name", f"You already have {KEYS_MOST} keys. Revoke one that you no longer need first.")
        made: tuple[ApiKey, str] = ApiKey.objects.create(
            user=user,
            name=name,
            scopes=[scope for scope in Scope.values if scope in wanted],
            only_models=models,
            **limits,
            expiry=None if days is None else timedelta(days=days),
            prefix=PREFIX,
        )
    return made


def _with_read(scopes: Iterable[str]) -> set[str]:
    """Return these scopes, and `read` if one of them includes it. Raises BadKey."""
    wanted = set(scopes)
    if unknown := wanted - set(Scope.values):
        raise BadKey("scopes", f"There is no scope {min(unknown)!r}. The scopes are: {', '.join(Scope.values)}.")
    if not wanted:
        raise BadKey("scopes", "Choose what the key may do.")
    return wanted if wanted <= {Scope.CONTEXT, Scope.PASSTHROUGH} else wanted | {Scope.READ.value}


def _clean_models(names: Iterable[str]) -> list[str]:
    """Return these names of models, stripped, each once, in their order. Raises BadKey."""
    models = list(dict.fromkeys(stripped for name in names if (stripped := name.strip())))
    if len(models) > MODELS_MOST:
        raise BadKey("only_models", f"Name at most {MODELS_MOST} models; these are {len(models)}.")
    for name in models:
        if len(name) > MODEL_NAME_MOST:
            raise BadKey(
                "only_models", f"A model\u2019s name has at most {MODEL_NAME_MOST} characters; one has {len(name):,}."
            )
        if not name.isprintable():
            raise BadKey("only_models", "A model\u2019s name has characters that cannot be seen: type it again.")
    return models


def _check_limits(limits: Mapping[str, int | None]) -> None:
    """Raise BadKey for a limit that is out of range."""
    for field, most in limits.items():
        if most is not None and not 1 <= most <= LIMITS_MOST[field]:
            raise BadKey(field, f"Give a number from 1 to {LIMITS_MOST[field]:,}. Without one, there is no limit.")


def key_from_header(header: str) -> ApiKey | None:
    """Return the key in an `Authorization` header, with its user; None if there is none, or it is expired or revoked.

    Also None if its user was deactivated. What the key may do is for `allows` to say: one that is found may not even
    read. The key is read from the database each time, so revoking works at once.
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
    """Whether this key has this scope."""
    return scope in key.scopes
