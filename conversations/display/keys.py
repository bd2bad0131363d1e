"""What an API key may do, in words: for its owner on the account page, and for the admin."""

from __future__ import annotations

from conversations.models import ApiKey, Scope


def may_in_words(key: ApiKey) -> str:
    """Return what a key may do, to follow "May"."""
    labels = [Scope(scope).label for scope in key.scopes]
    return ", ".join(label[0].lower() + label[1:] for label in labels)


def limits_in_words(key: ApiKey) -> str:
    """Return the limits of its own that a key has under /v1, such as "60 requests a minute"; "" if it has none."""
    limits = (
        (key.requests_a_minute, "request", "a minute"),
        (key.requests_a_day, "request", "a day"),
        (key.tokens_a_day, "token", "a day"),
    )
    return ", ".join(f"{most:,} {unit}{'' if most == 1 else 's'} {span}" for most, unit, span in limits if most)
