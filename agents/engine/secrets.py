"""The site's own secrets, which no ledger, no model and no log may hold, whoever says them (C20)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from agents.engine.ledger import JSON

HIDDEN = "[secret]"
"""What stands in the place of a secret."""
SHORTEST = 12
"""Characters from which on a text is taken for a secret: a shorter one (`postgres`) is many an innocent word."""

_known: list[str] = []


def keep_secret(texts: Iterable[str]) -> None:
    """From now on these are hidden, in the place of what was hidden before. Short ones are not."""
    forms = {form for text in texts if len(text) >= SHORTEST for form in _encodings(text)}
    _known[:] = sorted(forms, key=len, reverse=True)


def _encodings(text: str) -> Iterator[str]:
    """A secret as it is, as it stands within a JSON text, and in an address."""
    yield text
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield quote(text)
    yield quote(text, safe="")
    yield quote_plus(text)


def hide(text: str) -> str:
    """The text with what is secret replaced."""
    for secret in _known:
        if secret in text:
            text = text.replace(secret, HIDDEN)
    return text


def hide_in(value: JSON) -> JSON:
    """The same for every text in a JSON value. What holds no secret is returned as it is, not a copy.

    Keys too: those of a tool's result may come from anywhere. The engine's own are no secret of anybody.
    """
    if not _known or not _contains_secret(value):
        return value
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, list):
        return [hide_in(item) for item in value]
    return {hide(key) if isinstance(key, str) else key: hide_in(item) for key, item in value.items()}


def partial_secret_length(text: str) -> int:
    """How many characters at the end of a text could be the beginning of a secret that goes on after it."""
    longest = len(_known[0]) - 1 if _known else 0
    ends = (text[start:] for start in range(max(0, len(text) - longest), len(text)))
    return next((len(end) for end in ends if any(secret.startswith(end) for secret in _known)), 0)


def _contains_secret(value: JSON) -> bool:
    if isinstance(value, str):
        return any(secret in value for secret in _known)
    if isinstance(value, list):
        return any(map(_contains_secret, value))
    return isinstance(value, dict) and any(
        _contains_secret(key) or _contains_secret(item) for key, item in value.items()
    )
